package web

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

// table writes the rows of a CSV file.
type table struct{ w *csv.Writer }

// row writes one row, each cell in a form that no spreadsheet takes for a formula.
func (t table) row(cells ...string) error {
	for i, cell := range cells {
		cells[i] = plainCell(cell)
	}
	return t.w.Write(cells)
}

// exportCSV streams a CSV file. Once it has begun an error can only cut it short: the connection is then broken off, so that
// half a file is not taken for a whole one.
func (s *Server) exportCSV(c echo.Context, name string, columns []string, write func(table) error) error {
	private(c)
	w := c.Response()
	w.Header().Set(echo.HeaderContentType, "text/csv; charset=utf-8")
	w.Header().Set(echo.HeaderContentDisposition, fmt.Sprintf(`attachment; filename="%s.csv"`, name))
	if c.Request().Method == http.MethodHead {
		return c.NoContent(http.StatusOK)
	}
	out := csv.NewWriter(w)
	if err := out.Write(columns); err != nil {
		return err
	}
	if err := write(table{out}); err != nil {
		return s.broken(c, err)
	}
	out.Flush()
	return s.broken(c, out.Error())
}

// plainCell puts an apostrophe before what spreadsheets compute: = + - @ and the characters that lead there.
func plainCell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r\n", rune(s[0])) {
		return "'" + s
	}
	return s
}

func cellTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
