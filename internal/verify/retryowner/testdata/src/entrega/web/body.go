package web

import "io"

type readCloser = io.ReadCloser

func getBody() (io.ReadCloser, error) { return nil, nil }

type mine struct {
	GetBody func() (io.ReadCloser, error)
}
