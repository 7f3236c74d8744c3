package localpg

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// maxLog is the size from which pg.log is set aside at the next start. One older file is kept.
const maxLog = 10 << 20

// rotate sets a large log aside. It is called before a start, when no server writes to it.
func rotate(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Size() < maxLog {
		return nil
	}
	return os.Rename(path, path+".1")
}

// logSince returns what the log holds from offset on. What cannot be read is empty: it only words an error.
func logSince(path string, offset int64) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	raw, err := io.ReadAll(io.NewSectionReader(file, offset, 64<<10))
	if err != nil {
		return ""
	}
	return string(raw)
}

// reason picks the line of a log that says why the server gave up, without its time stamp.
func reason(said string) string {
	for line := range strings.Lines(said) {
		if _, after, ok := strings.Cut(line, "FATAL:"); ok {
			return strings.TrimSpace(after)
		}
	}
	return lastLine([]byte(said))
}

func lastLine(out []byte) string {
	out = bytes.TrimSpace(out)
	if len(out) == 0 {
		return "it said nothing"
	}
	return string(bytes.TrimSpace(out[bytes.LastIndexByte(out, '\n')+1:]))
}

func appendTo(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(file, text); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), file.Close())
	}
	return file.Close()
}
