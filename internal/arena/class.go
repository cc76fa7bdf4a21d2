package arena

import "math/bits"

// Sizes of the arena's parts. A unit is what a Ref counts.
const (
	unitShift  = 4
	pageShift  = 16
	chunkShift = 22

	pageUnits  = 1 << (pageShift - unitShift)
	chunkUnits = 1 << (chunkShift - unitShift)
	chunkPages = 1 << (chunkShift - pageShift)

	maxSmall  = 256     // 16-byte steps up to here
	maxFine   = 4 << 10 // 8 steps a doubling up to here
	maxClass  = 1 << 20 // 4 steps a doubling up to here; larger blocks are mapped alone
	nClasses  = 16 + 8*4 + 4*8
	maxSpan   = 16 // pages
	maxChunks = 1 << 16
)

// Class is the size class of a block. Large is the class of blocks mapped on their own.
type Class uint8

// Large is the class of blocks beyond the largest size class.
const Large Class = 255

var (
	classSize  [nClasses]uint32 // bytes of a block
	classPages [nClasses]uint8  // pages of a span
	fineClass  [maxFine/16 + 1]Class
	_          = initClasses()
)

func initClasses() bool {
	c := 0
	for s := 16; s <= maxSmall; s += 16 {
		classSize[c] = uint32(s)
		c++
	}
	for base := maxSmall; base < maxClass; base *= 2 {
		steps := 8
		if base >= maxFine {
			steps = 4
		}
		for i := 1; i <= steps; i++ {
			classSize[c] = uint32(base + base/steps*i)
			c++
		}
	}
	for c, s := range classSize {
		classPages[c] = spanPages(int(s))
	}
	for i, c := 0, 0; i < len(fineClass); i++ {
		if i*16 > int(classSize[c]) {
			c++
		}
		fineClass[i] = Class(c)
	}
	return true
}

// spanPages returns the least number of pages that wastes at most a 16th on blocks of size s.
func spanPages(s int) uint8 {
	for n := 1; n < maxSpan; n++ {
		if b := n << pageShift; b >= s && b%s <= b/16 {
			return uint8(n)
		}
	}
	return maxSpan
}

// ClassOf returns the class that holds n bytes.
func ClassOf(n int) Class {
	if n <= maxFine {
		return fineClass[(n+15)>>unitShift]
	}
	if n > maxClass {
		return Large
	}
	top := bits.Len(uint(n-1)) - 1 // 2^top < n <= 2^(top+1)
	step := (n - 1) >> (top - 2) & 3
	return Class(16 + 8*4 + 4*(top-12) + step)
}

// Size returns the bytes a block of the class holds; 0 for Large.
func (c Class) Size() int {
	if int(c) < nClasses {
		return int(classSize[c])
	}
	return 0
}
