package webhooks

import "container/heap"

// waiter is a task that waits in its lane for a place. Whoever takes it out of the parking answers on turn, once: nil is a
// place, an error is what the task's handler returns.
type waiter struct {
	taskID int64
	turn   chan error
	index  int
}

func newWaiter(taskID int64) *waiter { return &waiter{taskID: taskID, turn: make(chan error, 1)} }

// parking holds the waiters of a lane, the lowest task id first: the order in which their events were published.
type parking []*waiter

func (p *parking) add(w *waiter) { heap.Push(p, w) }

// next takes out the first waiter, nil when there is none.
func (p *parking) next() *waiter {
	if len(*p) == 0 {
		return nil
	}
	return heap.Pop(p).(*waiter)
}

// last is the waiter with the highest task id, nil when there is none.
func (p parking) last() *waiter {
	var last *waiter
	for _, w := range p {
		if last == nil || w.taskID > last.taskID {
			last = w
		}
	}
	return last
}

// has reports whether a task waits.
func (p parking) has(taskID int64) bool {
	for _, w := range p {
		if w.taskID == taskID {
			return true
		}
	}
	return false
}

// remove takes a waiter out and reports whether it was still there.
func (p *parking) remove(w *waiter) bool {
	if w.index < 0 {
		return false
	}
	heap.Remove(p, w.index)
	return true
}

// Len implements heap.Interface.
func (p parking) Len() int { return len(p) }

// Less implements heap.Interface.
func (p parking) Less(i, j int) bool { return p[i].taskID < p[j].taskID }

// Swap implements heap.Interface.
func (p parking) Swap(i, j int) {
	p[i], p[j] = p[j], p[i]
	p[i].index, p[j].index = i, j
}

// Push implements heap.Interface.
func (p *parking) Push(x any) {
	w := x.(*waiter)
	w.index = len(*p)
	*p = append(*p, w)
}

// Pop implements heap.Interface.
func (p *parking) Pop() any {
	old := *p
	w := old[len(old)-1]
	old[len(old)-1] = nil
	*p = old[:len(old)-1]
	w.index = -1
	return w
}
