package good

// Pages outside of any project.

func HomeURL() string  { return "/" }
func LoginURL() string { return "/login" }
func TaskURL(id string) string {
	return "/tasks/" + id
}

// EventURL is documented.
func EventURL(id string) string      { return "/events/" + id }
func RetryEventURL(id string) string { return EventURL(id) + "/retry" }
