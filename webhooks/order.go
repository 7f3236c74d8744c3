package webhooks

import "slices"

// keepDone is how many finished tasks an order remembers: more than are under way between a place in the lane and the commit.
const keepDone = 512

// order knows what comes first in a lane one wide. Tasks come from River in batches, whose workers start in any order, so the
// lowest id that has come need not be the lowest there is: what is due is asked of the table, once for many.
type order struct {
	// through is the last id up to which all that was due is known, and expected are those of them that have not come yet.
	through  int64
	expected []int64
	looking  bool
	done     []int64
}

func (o *order) arrived(id int64) {
	if i, found := slices.BinarySearch(o.expected, id); found {
		o.expected = slices.Delete(o.expected, i, i+1)
	}
}

// expect notes that a task which came goes back and will come again.
func (o *order) expect(id int64) {
	if i, found := slices.BinarySearch(o.expected, id); !found {
		o.expected = slices.Insert(o.expected, i, id)
	}
}

func (o *order) finished(id int64) {
	if len(o.done) == keepDone {
		o.done = slices.Delete(o.done, 0, keepDone/2)
	}
	o.done = append(o.done, id)
}

// allows reports that no lower id is due.
func (o *order) allows(id int64) bool {
	return id <= o.through && (len(o.expected) == 0 || id < o.expected[0])
}

// asks reports that the table must be asked about an id, and that nobody does so yet.
func (o *order) asks(id int64) bool {
	if o.looking || id <= o.through {
		return false
	}
	o.looking = true
	return true
}

// learn takes in all that is due up to an id, but for those that have come already, or were known when somebody else has told of more
// meanwhile.
func (o *order) learn(due []int64, through int64, come func(id int64) bool) {
	known := o.through
	o.through = max(o.through, through)
	for _, id := range due {
		if id <= known || id > through || come(id) || slices.Contains(o.done, id) {
			continue
		}
		o.expect(id)
	}
}
