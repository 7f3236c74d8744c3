package views

import _ "github.com/google/go-cmp"
