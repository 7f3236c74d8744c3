package cmp
