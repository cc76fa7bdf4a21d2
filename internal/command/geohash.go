package command

import "math"

// A position on earth is a cell of a grid: longitude and latitude cut in 2^step parts each, their numbers
// interleaved bit by bit (latitude in the even ones). The score of a member is its cell at step 26, 52 bits.
// The arithmetic follows Redis step by step, so that scores and results are the same; products are
// rounded before they are added, also where the processor could fuse the two.

const (
	geoStepMax  = 26
	geoLongMax  = 180.0
	geoLatMax   = 85.05112878
	earthRadius = 6372797.560856
	mercatorMax = 20037726.37
	radians     = math.Pi / 180
)

// geoCell is a cell of the grid of a step; the zero value is none.
type geoCell struct {
	bits uint64
	step uint8
}

// geoArea is what a cell covers.
type geoArea struct{ minLong, maxLong, minLat, maxLat float64 }

// spread puts the bits of x into the even bits.
func spread(x uint32) uint64 {
	b := uint64(x)
	b = (b | b<<16) & 0x0000ffff0000ffff
	b = (b | b<<8) & 0x00ff00ff00ff00ff
	b = (b | b<<4) & 0x0f0f0f0f0f0f0f0f
	b = (b | b<<2) & 0x3333333333333333
	return (b | b<<1) & 0x5555555555555555
}

// gather is the inverse of spread; it ignores the odd bits.
func gather(b uint64) uint32 {
	b &= 0x5555555555555555
	b = (b | b>>1) & 0x3333333333333333
	b = (b | b>>2) & 0x0f0f0f0f0f0f0f0f
	b = (b | b>>4) & 0x00ff00ff00ff00ff
	b = (b | b>>8) & 0x0000ffff0000ffff
	return uint32(b | b>>16)
}

// geoEncode returns the cell of a position; latMax is where the grid ends in the north and the south.
func geoEncode(long, lat, latMax float64, step uint8) geoCell {
	scale := float64(uint64(1) << step)
	x := float64((long+geoLongMax)/(2*geoLongMax)) * scale
	y := float64((lat+latMax)/(latMax+latMax)) * scale
	return geoCell{bits: spread(uint32(int64(y))) | spread(uint32(int64(x)))<<1, step: step}
}

// area returns what the cell covers.
func (c geoCell) area() geoArea {
	const longSize, latSize = 2 * geoLongMax, geoLatMax + geoLatMax
	parts := float64(uint64(1) << c.step)
	y, x := gather(c.bits), gather(c.bits>>1)
	return geoArea{
		minLong: -geoLongMax + float64(float64(x)/parts*longSize),
		maxLong: -geoLongMax + float64(float64(x+1)/parts*longSize),
		minLat:  -geoLatMax + float64(float64(y)/parts*latSize),
		maxLat:  -geoLatMax + float64(float64(y+1)/parts*latSize),
	}
}

// aligned returns the cell's number at the finest step.
func (c geoCell) aligned() uint64 { return c.bits << (52 - 2*c.step) }

// move returns the neighbour x cells to the east and y cells to the north, each -1, 0 or 1. The grid is a ring
// in both directions, but for a cell at the very end of it (longitude 180), whose number lies beyond it:
// moving along the other direction leaves that as it is.
func (c geoCell) move(x, y int) geoCell {
	const odd, even = 0xaaaaaaaaaaaaaaaa, 0x5555555555555555
	shift := 64 - 2*c.step
	long, lat := c.bits&odd, c.bits&even
	switch z := uint64(even) >> shift; {
	case x > 0:
		long = (long + z + 1) & (odd >> shift)
	case x < 0:
		long = ((long | z) - (z + 1)) & (odd >> shift)
	}
	switch z := uint64(odd) >> shift; {
	case y > 0:
		lat = (lat + z + 1) & (even >> shift)
	case y < 0:
		lat = ((lat | z) - (z + 1)) & (even >> shift)
	}
	return geoCell{bits: long | lat, step: c.step}
}

// geoScore returns the score of a position.
func geoScore(long, lat float64) float64 {
	return float64(geoEncode(long, lat, geoLatMax, geoStepMax).aligned())
}

// geoBits returns the bits of a cell that a score stands for: of one that no position has, those that a C program on x86-64, as Redis, makes of it.
func geoBits(score float64) uint64 {
	switch {
	case score >= 1<<64:
		return 0
	case score >= 1<<63:
		return uint64(score)
	case score < -1<<63:
		return 1 << 63
	}
	return uint64(int64(score))
}

// geoPosition returns the position a score stands for: the middle of its cell.
func geoPosition(score float64) (long, lat float64) {
	a := geoCell{bits: geoBits(score), step: geoStepMax}.area()
	clamp := func(x, limit float64) float64 { return max(-limit, min(limit, x)) }
	return clamp((a.minLong+a.maxLong)/2, geoLongMax), clamp((a.minLat+a.maxLat)/2, geoLatMax)
}

// latDistance returns the distance of two latitudes in meters.
func latDistance(lat1, lat2 float64) float64 {
	return earthRadius * math.Abs(float64(lat2*radians)-float64(lat1*radians))
}

// geoDistance returns the distance of two positions in meters, by the haversine formula.
func geoDistance(long1, lat1, long2, lat2 float64) float64 {
	v := math.Sin((float64(long2*radians) - float64(long1*radians)) / 2)
	if v == 0 {
		return latDistance(lat1, lat2)
	}
	y1, y2 := lat1*radians, lat2*radians
	u := math.Sin((float64(y2) - float64(y1)) / 2)
	a := float64(u*u) + float64(float64(float64(math.Cos(y1)*math.Cos(y2))*v)*v)
	return 2 * earthRadius * math.Asin(math.Sqrt(a))
}

// geoShape is what a search covers: a circle, or a box if it has a width. Sizes are in units.
type geoShape struct {
	long, lat     float64
	box           bool
	radius        float64
	width, height float64
	unit          float64 // meters
}

// distance returns how far a position is from the middle; ok is false if it is outside.
func (s *geoShape) distance(long, lat float64) (meters float64, ok bool) {
	if s.box {
		if latDistance(lat, s.lat) > float64(s.height*s.unit)/2 {
			return 0, false
		}
		if geoDistance(long, lat, s.long, lat) > float64(s.width*s.unit)/2 {
			return 0, false
		}
		return geoDistance(s.long, s.lat, long, lat), true
	}
	d := geoDistance(s.long, s.lat, long, lat)
	return d, d <= float64(s.radius*s.unit)
}

// bounds returns a box around the shape.
func (s *geoShape) bounds() geoArea {
	height, width := s.unit*s.radius, s.unit*s.radius
	if s.box {
		height, width = s.unit*float64(s.height/2), s.unit*float64(s.width/2)
	}
	lat := float64(height/earthRadius) / radians
	top := float64(width/earthRadius/math.Cos((s.lat+lat)*radians)) / radians
	bottom := float64(width/earthRadius/math.Cos((s.lat-lat)*radians)) / radians
	side := top
	if s.lat < 0 {
		side = bottom
	}
	return geoArea{s.long - side, s.long + side, s.lat - lat, s.lat + lat}
}

// estimateStep returns the step whose cells are about as large as a circle.
func estimateStep(meters, lat float64) uint8 {
	if meters == 0 {
		return geoStepMax
	}
	step := 1
	for meters < mercatorMax {
		meters *= 2
		step++
	}
	step -= 2
	if lat > 66 || lat < -66 {
		step--
		if lat > 80 || lat < -80 {
			step--
		}
	}
	return uint8(max(1, min(step, geoStepMax)))
}

// directions are the places of a cell's neighbours in the order they are searched.
var directions = [9][2]int{{0, 0}, {0, 1}, {0, -1}, {1, 0}, {-1, 0}, {1, 1}, {-1, 1}, {1, -1}, {-1, -1}}

// cells returns the cells that cover the shape: the one in the middle and its neighbours, as far as they
// are needed.
func (s *geoShape) cells() (cells [9]geoCell) {
	b := s.bounds()
	meters := s.radius
	if s.box {
		meters = math.Sqrt(float64((s.width/2)*(s.width/2)) + float64((s.height/2)*(s.height/2)))
	}
	step := estimateStep(meters*s.unit, s.lat)
	mid := geoEncode(s.long, s.lat, geoLatMax, step)
	if step > 1 && (mid.move(0, 1).area().maxLat < b.maxLat || mid.move(0, -1).area().minLat > b.minLat ||
		mid.move(1, 0).area().maxLong < b.maxLong || mid.move(-1, 0).area().minLong > b.minLong) {
		step--
		mid = geoEncode(s.long, s.lat, geoLatMax, step)
	}
	a := mid.area()
	for i, d := range directions {
		useless := step >= 2 && (d[1] < 0 && a.minLat < b.minLat || d[1] > 0 && a.maxLat > b.maxLat ||
			d[0] < 0 && a.minLong < b.minLong || d[0] > 0 && a.maxLong > b.maxLong)
		if !useless {
			cells[i] = mid.move(d[0], d[1])
		}
	}
	return cells
}

// geoAlphabet are the digits of geohash strings.
const geoAlphabet = "0123456789bcdefghjkmnpqrstuvwxyz"

// geoString returns the standard geohash of a score's position: 52 bits, the last of its 11 digits is 0.
func geoString(score float64) (text [11]byte) {
	long, lat := geoPosition(score)
	bits := geoEncode(long, lat, 90, geoStepMax).bits
	for i := range 10 {
		text[i] = geoAlphabet[bits>>(52-(i+1)*5)&0x1f]
	}
	text[10] = geoAlphabet[0]
	return text
}
