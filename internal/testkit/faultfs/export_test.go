package faultfs

// Classified reports whether the kind is a read or a write.
func (k OpKind) Classified() bool { return kinds[k].class == read || kinds[k].class == write }
