package command

import (
	"cmp"
	"slices"

	"github.com/kevydb/kevy/state"
)

// geoForm is which of the searching commands it is.
type geoForm uint8

const (
	geoByCenter geoForm = iota // GEORADIUS
	geoByMember                // GEORADIUSBYMEMBER
	geoModern                  // GEOSEARCH and GEOSEARCHSTORE
)

// geoSort is the order of the results.
type geoSort uint8

const (
	geoUnsorted geoSort = iota
	geoNearest
	geoFarthest
)

// geoQuery is a search as a client asks for it.
type geoQuery struct {
	form                         geoForm
	readOnly                     bool // GEORADIUS_RO and kin: no STORE
	shape                        geoShape
	dist, hash, coord            bool
	order                        geoSort
	any                          bool
	count                        int64
	store                        []byte // nil: reply
	storeDist                    bool
	member, center, circle, rect bool // FROMMEMBER, FROMLONLAT, BYRADIUS, BYBOX are there
	destination                  bool // GEOSEARCHSTORE

	z     state.ZSet
	found bool
}

func planGeoRadius(c *Ctx)           { planGeo(c, geoQuery{form: geoByCenter}) }
func planGeoRadiusRO(c *Ctx)         { planGeo(c, geoQuery{form: geoByCenter, readOnly: true}) }
func planGeoRadiusByMember(c *Ctx)   { planGeo(c, geoQuery{form: geoByMember}) }
func planGeoRadiusByMemberRO(c *Ctx) { planGeo(c, geoQuery{form: geoByMember, readOnly: true}) }
func planGeoSearch(c *Ctx)           { planGeo(c, geoQuery{form: geoModern}) }

func planGeoSearchStore(c *Ctx) {
	planGeo(c, geoQuery{form: geoModern, destination: true, store: c.Args[1]})
}

func planGeo(c *Ctx, q geoQuery) {
	source := c.Args[1]
	rest := c.Args[2:]
	if q.destination {
		source, rest = c.Args[2], c.Args[3:]
	}
	var ok bool
	if q.z, q.found, ok = lookupZSet(c, source); !ok {
		return
	}
	bad := q.parse(rest)
	if bad == "" {
		bad = q.conflicts(string(clip(c.Args[0], len(c.Args[0]))))
	}
	if bad != "" {
		c.W.Error(bad)
		return
	}
	if !q.found {
		if q.store != nil {
			storeScored(c, q.store, nil)
			c.W.Int(0)
			return
		}
		c.W.Array(0)
		return
	}
	points := q.search()
	if q.store != nil {
		q.storePoints(c, points, string(source) == string(q.store))
		return
	}
	q.reply(c, points)
}

// parse reads what stands behind the source's key.
func (q *geoQuery) parse(args [][]byte) (bad errorText) {
	switch q.form {
	case geoByCenter:
		if q.shape.long, q.shape.lat, bad = geoPair(args); bad == "" {
			bad = q.radius(args[2:])
		}
		args = args[4:]
	case geoByMember:
		if q.found {
			if bad = q.fromMember(args[0]); bad == "" {
				bad = q.radius(args[1:])
			}
		}
		args = args[3:]
	case geoModern:
	}
	for bad == "" && len(args) > 0 {
		var used int
		if used, bad = q.option(args); bad == "" && used == 0 {
			bad = msgSyntax
		}
		args = args[used:]
	}
	return bad
}

// option reads one option and returns how many words it takes, 0 if it is none.
func (q *geoQuery) option(args [][]byte) (used int, bad errorText) {
	word := args[0]
	switch {
	case isWord(word, "withdist"):
		q.dist = true
	case isWord(word, "withhash"):
		q.hash = true
	case isWord(word, "withcoord"):
		q.coord = true
	case isWord(word, "any"):
		q.any = true
	case isWord(word, "asc"):
		q.order = geoNearest
	case isWord(word, "desc"):
		q.order = geoFarthest
	case isWord(word, "count") && len(args) > 1:
		if q.count, bad = intArg(args[1]); bad == "" && q.count <= 0 {
			bad = msgGeoCount
		}
		return 2, bad
	case q.form != geoModern && !q.readOnly && len(args) > 1 && (isWord(word, "store") || isWord(word, "storedist")):
		q.store, q.storeDist = args[1], len(word) > len("store")
		return 2, ""
	case q.destination && isWord(word, "storedist"):
		q.storeDist = true
	case q.form == geoModern:
		return q.where(args)
	default:
		return 0, ""
	}
	return 1, ""
}

// where reads the options of GEOSEARCH that say where to search.
func (q *geoQuery) where(args [][]byte) (used int, bad errorText) {
	word := args[0]
	switch {
	case isWord(word, "frommember") && len(args) > 1 && !q.center:
		q.member = true
		if q.found {
			bad = q.fromMember(args[1])
		}
		return 2, bad
	case isWord(word, "fromlonlat") && len(args) > 2 && !q.member:
		q.center = true
		q.shape.long, q.shape.lat, bad = geoPair(args[1:])
		return 3, bad
	case isWord(word, "byradius") && len(args) > 2 && !q.rect:
		q.circle = true
		return 3, q.radius(args[1:])
	case isWord(word, "bybox") && len(args) > 3 && !q.circle:
		q.rect = true
		return 4, q.boxSize(args[1:])
	}
	return 0, ""
}

func (q *geoQuery) fromMember(m []byte) errorText {
	score, ok := q.z.Score(m)
	if !ok {
		return msgGeoMember
	}
	q.shape.long, q.shape.lat = geoPosition(score)
	return ""
}

// radius reads a radius and its unit.
func (q *geoQuery) radius(args [][]byte) (bad errorText) {
	r, ok := parseDouble(args[0])
	switch {
	case !ok:
		return msgGeoRadius
	case r < 0:
		return msgGeoNegRadius
	}
	q.shape.box, q.shape.radius = false, r
	q.shape.unit, bad = geoUnit(args[1])
	return bad
}

// boxSize reads a width, a height and their unit.
func (q *geoQuery) boxSize(args [][]byte) (bad errorText) {
	w, ok := parseDouble(args[0])
	if !ok {
		return msgGeoWidth
	}
	h, ok := parseDouble(args[1])
	switch {
	case !ok:
		return msgGeoHeight
	case w < 0 || h < 0:
		return msgGeoNegBox
	}
	q.shape.box, q.shape.width, q.shape.height = true, w, h
	q.shape.unit, bad = geoUnit(args[2])
	return bad
}

// conflicts returns the error of options that do not go together; name is the command's as it was sent.
func (q *geoQuery) conflicts(name string) errorText {
	switch {
	case q.store != nil && (q.dist || q.hash || q.coord):
		if q.destination {
			return "ERR GEOSEARCHSTORE" + msgGeoWith
		}
		return "ERR STORE option in GEORADIUS" + msgGeoWith
	case q.form == geoModern && !q.member && !q.center:
		return msgGeoFrom + name
	case q.form == geoModern && !q.circle && !q.rect:
		return msgGeoBy + name
	case q.any && q.count == 0:
		return msgGeoAny
	}
	return ""
}

// geoPoint is a member that a search has found.
type geoPoint struct {
	scored
	long, lat float64
	dist      float64 // in units
}

// search returns the points found, in order, at most count of them.
func (q *geoQuery) search() (points []geoPoint) {
	limit := 0
	if q.any {
		limit = int(q.count)
	}
	var last geoCell
	cells := q.shape.cells()
	for i, cell := range cells {
		if cell == (geoCell{}) || last != (geoCell{}) && cell == last {
			continue // a cell of a huge search can be its own neighbour's neighbour
		}
		if limit > 0 && len(points) >= limit {
			break
		}
		points = q.collect(points, cell, limit)
		if i > 0 {
			last = cell
		}
	}
	if q.count != 0 && q.order == geoUnsorted && !q.any {
		q.order = geoNearest
	}
	switch q.order {
	case geoUnsorted:
	case geoNearest:
		slices.SortStableFunc(points, func(a, b geoPoint) int { return cmp.Compare(a.dist, b.dist) })
	case geoFarthest:
		slices.SortStableFunc(points, func(a, b geoPoint) int { return cmp.Compare(b.dist, a.dist) })
	}
	if q.count != 0 {
		points = points[:min(int64(len(points)), q.count)]
	}
	for i := range points {
		points[i].dist /= q.shape.unit
	}
	return points
}

// collect appends the points of a cell that are inside the shape, until there are limit points.
func (q *geoQuery) collect(points []geoPoint, cell geoCell, limit int) []geoPoint {
	low := float64(cell.aligned())
	cell.bits++
	high := float64(cell.aligned())
	cur := q.z.At(q.z.RankOfScore(low, false))
	for {
		score, m, ok := cur.Next()
		if !ok || score >= high {
			return points
		}
		long, lat := geoPosition(score)
		if d, inside := q.shape.distance(long, lat); inside {
			points = append(points, geoPoint{scored{m, score}, long, lat, d})
		}
		if limit > 0 && len(points) >= limit {
			return points
		}
	}
}

func (q *geoQuery) reply(c *Ctx, points []geoPoint) {
	c.W.Array(len(points))
	extra := boolInt(q.dist) + boolInt(q.hash) + boolInt(q.coord)
	for i := range points {
		p := &points[i]
		if extra > 0 {
			c.W.Array(1 + extra)
		}
		c.W.Bulk(p.member)
		if q.dist {
			writeDistance(c.W, p.dist)
		}
		if q.hash {
			c.W.Int(int64(p.score))
		}
		if q.coord {
			c.W.Array(2)
			writeCoordinate(c.W, p.long)
			writeCoordinate(c.W, p.lat)
		}
	}
}

// storePoints plans that the destination becomes the points; own says that it is the source as well.
func (q *geoQuery) storePoints(c *Ctx, points []geoPoint, own bool) {
	items := make([]scored, len(points))
	for i := range points {
		items[i] = points[i].scored
		if q.storeDist {
			items[i].score = points[i].dist
		}
		if own {
			items[i].member = c.Copy(items[i].member)
		}
	}
	storeScored(c, q.store, items)
	c.W.Int(int64(len(items)))
}

// geoStoreKeys finds the keys of GEORADIUS and GEORADIUSBYMEMBER: the source, and those to store into, of which the last
// one counts.
func geoStoreKeys(args [][]byte, pos []int) ([]int, bool) {
	if len(args) < 2 {
		return pos, false
	}
	pos = append(pos, 1)
	for i := 5; i+1 < len(args); i++ {
		if isWord(args[i], "store") || isWord(args[i], "storedist") {
			i++
			pos = append(pos, i)
		}
	}
	return pos, true
}
