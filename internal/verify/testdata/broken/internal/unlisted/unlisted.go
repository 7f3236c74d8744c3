// Package unlisted has no level.
package unlisted
