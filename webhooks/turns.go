package webhooks

import (
	"context"
	"sync"
)

// turns let the holders of one key come one after the other in this process, so that they do not wait for each other in the database,
// each with a connection that others could use. The zero value is ready; it is safe for concurrent use.
type turns struct {
	mu    sync.Mutex
	byKey map[string]*turn
}

// turn is one key's: free holds a token while nobody has the turn, users counts those who have it or wait for it.
type turn struct {
	free  chan struct{}
	users int
}

// take waits for the key's turn, or for the end of ctx. Who has it must call done. Waited says that others had it meanwhile.
func (t *turns) take(ctx context.Context, key string) (done func(), waited bool, err error) {
	t.mu.Lock()
	if t.byKey == nil {
		t.byKey = map[string]*turn{}
	}
	own := t.byKey[key]
	if own == nil {
		own = &turn{free: make(chan struct{}, 1)}
		own.free <- struct{}{}
		t.byKey[key] = own
	}
	waited = own.users > 0
	own.users++
	t.mu.Unlock()

	select {
	case <-own.free:
		return func() {
			own.free <- struct{}{}
			t.leave(key, own)
		}, waited, nil
	case <-ctx.Done():
		t.leave(key, own)
		return nil, waited, context.Cause(ctx)
	}
}

func (t *turns) leave(key string, own *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(t.byKey, key)
	}
}
