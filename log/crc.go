package log

import (
	"encoding/binary"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// slice8 are the tables to take eight bytes into a CRC32C at once.
var slice8 = func() (t [8][256]uint32) {
	t[0] = *castagnoli
	for i := range 256 {
		for k := 1; k < 8; k++ {
			c := t[k-1][i]
			t[k][i] = t[0][c&0xff] ^ c>>8
		}
	}
	return t
}()

// crcUint64 is crc32.Update over v's eight little-endian bytes, without their having to be in memory.
func crcUint64(crc uint32, v uint64) uint32 {
	v ^= uint64(^crc)
	return ^(slice8[7][v&0xff] ^ slice8[6][v>>8&0xff] ^ slice8[5][v>>16&0xff] ^ slice8[4][v>>24&0xff] ^
		slice8[3][v>>32&0xff] ^ slice8[2][v>>40&0xff] ^ slice8[1][v>>48&0xff] ^ slice8[0][v>>56])
}

// frameSeed is the start of every frame checksum of one generation of one shard.
func frameSeed(shard int, generation uint64) uint32 {
	return crcUint64(crcUint64(0, uint64(shard)), generation)
}

// frameCRC is the checksum of the frame with the given offset; frame is all of it, from its
// checksum field on.
func frameCRC(seed uint32, offset uint64, frame []byte) uint32 {
	return crc32.Update(crcUint64(seed, offset), castagnoli, frame[4:])
}

var le = binary.LittleEndian
