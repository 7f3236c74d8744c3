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

// usage is CPU time in seconds: of Postgres, of the nodes, and of this process, which is the generator and the receiver.
type usage struct{ postgres, nodes, bench float64 }

func (u usage) since(before usage) usage {
	return usage{u.postgres - before.postgres, u.nodes - before.nodes, u.bench - before.bench}
}

func (u usage) all() float64 { return u.postgres + u.nodes + u.bench }

// usage reads CPU times. Outside Linux they are zero.
func (b *bench) usage(nodes []*node) usage {
	postmaster, _ := postmasterPID(b.data) // Where there is none nothing has its id, 0.
	ours := map[int]bool{}
	for _, n := range nodes {
		ours[n.cmd.Process.Pid] = true
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*") // The pattern is constant and sound.
	var u usage
	for _, dir := range dirs {
		s, ok := readStat(dir)
		if !ok {
			continue
		}
		switch {
		case s.pid == os.Getpid():
			u.bench += s.own // Its children are counted by themselves.
		case ours[s.pid]:
			u.nodes += s.own + s.reaped
		case s.pid == postmaster:
			u.postgres += s.own + s.reaped
		case s.parent == postmaster:
			u.postgres += s.own
		}
	}
	return u
}

// addUsage adds what n of something took, and which part of it was Postgres' and the nodes'.
func (b *bench) addUsage(name string, u usage, n int) {
	per := 1000 / float64(n)
	b.figures.add("CPU seconds per 1,000, "+name, "s", u.all()*per)
	b.figures.add("of that Postgres, "+name, "s", u.postgres*per)
	b.figures.add("of that the nodes, "+name, "s", u.nodes*per)
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
