package kevy

// SetCountForTesting sets how many keys or frames the mirror asks for at a time.
func (m *Mirror) SetCountForTesting(n int) { m.count = n }
