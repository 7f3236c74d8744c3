package web

import "entrega/internal/store"

// scanPages bounds how many pages one request reads to fill a page of a list that is narrowed after reading.
const scanPages = 10

// collect reads a list page by page and keeps what fits, until there is a page of it or enough was read. It is for conditions
// that the list's own statement does not know; the cursors go on where the reading stopped, so a page may be short or empty
// and still have one behind it. backward says that the first page's cursor leads towards the start of the list.
func collect[T any](first store.Page, backward bool, read func(store.Page) (store.List[T], error), keep func(T) bool) (store.List[T], error) {
	var all store.List[T]
	page := first
	for n := range scanPages {
		list, err := read(page)
		if err != nil {
			return all, err
		}
		kept := make([]T, 0, len(list.Rows))
		for _, row := range list.Rows {
			if keep(row) {
				kept = append(kept, row)
			}
		}
		if n == 0 {
			all.Next, all.Prev = list.Next, list.Prev
		}
		if backward {
			all.Rows, all.Prev = append(kept, all.Rows...), list.Prev
			page.Cursor = list.Prev
		} else {
			all.Rows, all.Next = append(all.Rows, kept...), list.Next
			page.Cursor = list.Next
		}
		if page.Cursor == "" || len(all.Rows) >= store.DefaultLimit {
			break
		}
	}
	return all, nil
}
