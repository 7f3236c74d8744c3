package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ticksPerSecond is the unit of /proc/<pid>/stat, which Linux fixes at 100.
const ticksPerSecond = 100

// usage is CPU time in seconds of this process, the nodes and Postgres together.
type usage float64

func (u usage) since(before usage) float64 { return float64(u - before) }

// usage reads CPU times. Outside Linux they are zero.
func (b *bench) usage(nodes []*node) usage {
	roots := map[int]bool{os.Getpid(): true}
	for _, n := range nodes {
		roots[n.cmd.Process.Pid] = true
	}
	if pid, ok := postmasterPID(b.data); ok {
		roots[pid] = true
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*") // The pattern is constant and sound.
	total := 0.0
	for _, dir := range dirs {
		s, ok := readStat(dir)
		if !ok {
			continue
		}
		switch {
		case roots[s.pid] && s.pid == os.Getpid():
			total += s.own // Its children are counted by themselves.
		case roots[s.pid]:
			total += s.own + s.reaped
		case roots[s.parent] && s.parent != os.Getpid():
			total += s.own
		}
	}
	return usage(total)
}

type stat struct {
	pid, parent int
	own, reaped float64
}

func readStat(dir string) (s stat, ok bool) {
	raw, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return s, false
	}
	// The name in parentheses may hold anything; the fields behind it are numbers, the state first.
	end := strings.LastIndexByte(string(raw), ')')
	fields := strings.Fields(string(raw[end+1:]))
	if end < 0 || len(fields) < 15 {
		return s, false
	}
	s.pid, err = strconv.Atoi(filepath.Base(dir))
	s.parent, _ = strconv.Atoi(fields[1])
	seconds := func(i int) float64 {
		n, _ := strconv.ParseFloat(fields[i], 64)
		return n / ticksPerSecond
	}
	s.own, s.reaped = seconds(11)+seconds(12), seconds(13)+seconds(14)
	return s, err == nil
}

func postmasterPID(data string) (int, bool) {
	raw, err := os.ReadFile(filepath.Join(data, "pg", "postmaster.pid"))
	if err != nil {
		return 0, false
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	return pid, err == nil
}

// peakMiB is the most memory that a process had resident, in MiB.
func peakMiB(pid int) float64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if rest, found := strings.CutPrefix(line, "VmHWM:"); found {
			kib, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kib / 1024
		}
	}
	return 0
}
