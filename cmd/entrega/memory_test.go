package main

import "testing"

func TestMemoryLimit_GrowsWithWhatIsAlive(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for live, want := range map[uint64]int64{0: 112 * mib, 40 * mib: 112 * mib, 100 * mib: 182 * mib, 1000 * mib: 1532 * mib} {
		if got := memoryLimit(live); got != want {
			t.Errorf("with %d MiB alive the limit is %d MiB, want %d", live/mib, got/mib, want/mib)
		}
	}
}
