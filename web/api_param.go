package web

import (
	"fmt"

	"github.com/danielgtaylor/huma/v2"

	"entrega/internal/store"
)

// PageParams are the parameters of every list. Like all that is embedded into inputs and answers it is exported, because huma
// passes over embedded structs that are not.
type PageParams struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"How many to answer at most."`
	Cursor string `query:"cursor" doc:"The nextCursor or prevCursor of an earlier answer with the same filters." example:"eyJkIjoibmV4dCIsImsiOjQyfQ"`
}

func (p PageParams) page() store.Page { return store.Page{Limit: p.Limit, Cursor: p.Cursor} }

// listBody is one page of a list.
type listBody[T any] struct {
	Data       []T     `json:"data" nullable:"false"`
	NextCursor *string `json:"nextCursor" doc:"Leads to the next page; null on the last." example:"eyJkIjoibmV4dCIsImsiOjQyfQ"`
	PrevCursor *string `json:"prevCursor" doc:"Leads to the page before; null on the first."`
}

type listOutput[T any] struct{ Body listBody[T] }

// listOf makes the answer of a page of rows.
func listOf[R, T any](list store.List[R], shown func(R) T) *listOutput[T] {
	out := &listOutput[T]{Body: listBody[T]{Data: make([]T, len(list.Rows)), NextCursor: orNull(list.Next), PrevCursor: orNull(list.Prev)}}
	for i, row := range list.Rows {
		out.Body.Data[i] = shown(row)
	}
	return out
}

// orNull is nil for the zero value, which JSON then shows as null.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// paramSentence says what a query parameter takes, or that there is no such parameter.
func paramSentence(op *huma.Operation, name string) string {
	var known []string
	for _, p := range op.Parameters {
		if p.Name == name {
			return schemaSentence(p.Schema)
		}
		if p.In == "query" {
			known = append(known, p.Name)
		}
	}
	if len(known) == 0 {
		return "This call takes no parameters."
	}
	return unknownSentence(name, known)
}

func schemaSentence(s *huma.Schema) string {
	switch {
	case len(s.Enum) > 0:
		words := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			words[i] = fmt.Sprint(v)
		}
		return "Choose one of " + joinWords(words, "or") + "."
	case s.Format == "date-time":
		return instantSentence
	case s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf("Give a whole number from %v to %v.", *s.Minimum, *s.Maximum)
	case s.MaxLength != nil:
		return fmt.Sprintf("Give %d characters at most.", *s.MaxLength)
	default:
		return "Give a value that the documentation describes."
	}
}
