package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// statementSettings make Postgres keep the account that statements.go reads.
func statementSettings() map[string]string {
	return map[string]string{"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track": "all"}
}

// countStatements begins an account of what Postgres does, where one is asked for, and returns what writes it to a file.
func (in *installation) countStatements(ctx context.Context, name string) (stop func() error, err error) {
	if in.bench.statements == "" {
		return func() error { return nil }, nil
	}
	if _, err := in.pool.Exec(ctx, `create extension if not exists pg_stat_statements; select pg_stat_statements_reset()`); err != nil {
		return nil, fmt.Errorf("begin an account of the statements: %w", err)
	}
	return func() error {
		rows, err := in.pool.Query(ctx, `
			select calls, rows, total_exec_time, shared_blks_hit + shared_blks_dirtied, wal_bytes::bigint, regexp_replace(query, '\s+', ' ', 'g')
			from pg_stat_statements where dbid = (select oid from pg_database where datname = current_database())
			order by total_exec_time desc limit 30`)
		if err != nil {
			return fmt.Errorf("read the account of the statements: %w", err)
		}
		defer rows.Close()
		var out strings.Builder
		out.WriteString("calls\trows\tms\tblocks\tWAL bytes\tstatement\n")
		for rows.Next() {
			var calls, n, blocks, wal int64
			var ms float64
			var query string
			if err := rows.Scan(&calls, &n, &ms, &blocks, &wal, &query); err != nil {
				return fmt.Errorf("read the account of the statements: %w", err)
			}
			fmt.Fprintf(&out, "%d\t%d\t%.0f\t%d\t%d\t%s\n", calls, n, ms, blocks, wal, query)
		}
		if err := rows.Err(); err != nil {
			return fmt.Errorf("read the account of the statements: %w", err)
		}
		return os.WriteFile(filepath.Join(in.bench.statements, fileName(name)+".tsv"), []byte(out.String()), 0o644)
	}, nil
}
