package jobs

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// TableSize is what a table and its indexes take on disk. A partitioned table counts with its partitions. Rows is the planner's estimate.
type TableSize struct {
	Name  string `db:"name"`
	Bytes int64  `db:"bytes"`
	Rows  int64  `db:"rows"`
}

// ListTableSizes lists the largest tables first.
func ListTableSizes(ctx context.Context, db store.DB) ([]TableSize, error) {
	rows, err := db.Query(ctx, `
		select coalesce(parent.relname, c.relname)::text as name, sum(pg_total_relation_size(c.oid))::bigint as bytes, sum(greatest(c.reltuples, 0))::bigint as rows
		from pg_class c
		join pg_namespace n on n.oid = c.relnamespace
		left join pg_inherits i on i.inhrelid = c.oid
		left join pg_class parent on parent.oid = i.inhparent
		where n.nspname in ('public', 'entrega') and c.relkind = 'r'
		group by 1 order by 2 desc, 1`)
	if err != nil {
		return nil, fmt.Errorf("measure tables: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[TableSize])
}

// SchemaVersions are the versions of our schema and of River's.
func SchemaVersions(ctx context.Context, db store.DB) (ours, river int, err error) {
	err = db.QueryRow(ctx, `select (select version from public.entrega_schema_version), (select max(version) from river_migration where line = 'main')`).Scan(&ours, &river)
	if err != nil {
		return 0, 0, fmt.Errorf("read schema versions: %w", err)
	}
	return ours, river, nil
}
