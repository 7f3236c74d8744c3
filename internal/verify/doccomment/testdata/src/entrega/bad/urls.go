package bad

// Pages outside of any project.

func HomeURL() string { return "/" }

func LoginURL() string { return "/login" } // want `doccomment/exported: exported function LoginURL`

// TaskURL is documented.
func TaskURL(id string) string { return "/tasks/" + id }
func Retry(id string) error { // want `doccomment/exported: exported function Retry`
	println(id)
	return nil
}

var x = 1

func EventURL() string { return "/events" } // want `doccomment/exported: exported function EventURL`
