package tree
