package command

import (
	"math"
	"strconv"

	"github.com/kevydb/kevy/resp"
)

// Error texts of geo commands.
const (
	msgGeoUnit      = "ERR unsupported unit provided. please use M, KM, FT, MI"
	msgGeoRadius    = "ERR need numeric radius"
	msgGeoNegRadius = "ERR radius cannot be negative"
	msgGeoWidth     = "ERR need numeric width"
	msgGeoHeight    = "ERR need numeric height"
	msgGeoNegBox    = "ERR height or width cannot be negative"
	msgGeoMember    = "ERR could not decode requested zset member"
	msgGeoCount     = "ERR COUNT must be > 0"
	msgGeoAny       = "ERR the ANY argument requires COUNT argument"
	msgGeoFrom      = "ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for "
	msgGeoBy        = "ERR exactly one of BYRADIUS and BYBOX can be specified for "
	msgGeoWith      = " is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
)

// geoPair reads a longitude and a latitude.
func geoPair(args [][]byte) (long, lat float64, bad errorText) {
	long, ok1 := parseDouble(args[0])
	if !ok1 {
		return 0, 0, msgNotFloat
	}
	lat, ok2 := parseDouble(args[1])
	if !ok2 {
		return 0, 0, msgNotFloat
	}
	if math.Abs(long) > geoLongMax || math.Abs(lat) > geoLatMax {
		return 0, 0, "ERR invalid longitude,latitude pair " + fixed6(long) + "," + fixed6(lat)
	}
	return long, lat, ""
}

// fixed6 formats as C's %f.
func fixed6(f float64) string {
	if math.IsInf(f, 0) {
		return string(resp.AppendDouble(nil, f))
	}
	return strconv.FormatFloat(f, 'f', 6, 64)
}

// geoUnit returns how many meters a unit has.
func geoUnit(b []byte) (meters float64, bad errorText) {
	switch {
	case isWord(b, "m"):
		return 1, ""
	case isWord(b, "km"):
		return 1000, ""
	case isWord(b, "ft"):
		return 0.3048, ""
	case isWord(b, "mi"):
		return 1609.34, ""
	}
	return 0, msgGeoUnit
}

// planGeoAdd plans GEOADD key [NX|XX] [CH] longitude latitude member...
func planGeoAdd(c *Ctx) {
	var o zaddOptions
	at := 2
scan:
	for ; at < len(c.Args); at++ {
		switch word := c.Args[at]; {
		case isWord(word, "nx"):
			o.nx = true
		case isWord(word, "xx"):
			o.xx = true
		case isWord(word, "ch"):
			o.ch = true
		default:
			break scan
		}
	}
	places := c.Args[at:]
	if len(places) == 0 || len(places)%3 != 0 || o.nx && o.xx {
		c.W.Error(msgSyntax)
		return
	}
	var few [8]scored
	items := few[:0]
	for ; len(places) > 0; places = places[3:] {
		long, lat, bad := geoPair(places)
		if bad != "" {
			c.W.Error(bad)
			return
		}
		items = append(items, scored{member: places[2], score: geoScore(long, lat)})
	}
	runZAdd(c, o, items)
}

// writeCoordinate writes a coordinate with 17 decimals, zeros at the end removed.
func writeCoordinate(w *resp.Writer, f float64) {
	var buf [64]byte
	b := strconv.AppendFloat(buf[:1], f, 'f', 17, 64)
	for b[len(b)-1] == '0' {
		b = b[:len(b)-1]
	}
	if b[len(b)-1] == '.' {
		b = b[:len(b)-1]
	}
	if string(b[1:]) == "-0" {
		b = append(b[:1], '0')
	}
	if !w.RESP3() {
		w.Bulk(b[1:])
		return
	}
	b[0] = ','
	w.Raw(append(b, '\r', '\n'))
}

// writeDistance writes a distance with 4 decimals.
func writeDistance(w *resp.Writer, d float64) {
	var buf [40]byte
	w.Bulk(strconv.AppendFloat(buf[:0], math.RoundToEven(d*10000)/10000, 'f', 4, 64))
}

func planGeoPos(c *Ctx) {
	replyScores(c, func(score float64) {
		long, lat := geoPosition(score)
		c.W.Array(2)
		writeCoordinate(c.W, long)
		writeCoordinate(c.W, lat)
	}, c.W.NullArray)
}

func planGeoHash(c *Ctx) {
	replyScores(c, func(score float64) {
		text := geoString(score)
		c.W.Bulk(text[:])
	}, c.W.Null)
}

// planGeoDist plans GEODIST key member member [unit].
func planGeoDist(c *Ctx) {
	unit := 1.0
	switch {
	case len(c.Args) == 5:
		var bad errorText
		if unit, bad = geoUnit(c.Args[4]); bad != "" {
			c.W.Error(bad)
			return
		}
	case len(c.Args) > 5:
		c.W.Error(msgSyntax)
		return
	}
	z, found, ok := lookupZSet(c, c.Args[1])
	if !ok {
		return
	}
	if found {
		score1, ok1 := z.Score(c.Args[2])
		if score2, ok2 := z.Score(c.Args[3]); ok1 && ok2 {
			long1, lat1 := geoPosition(score1)
			long2, lat2 := geoPosition(score2)
			writeDistance(c.W, geoDistance(long1, lat1, long2, lat2)/unit)
			return
		}
	}
	c.W.Null()
}
