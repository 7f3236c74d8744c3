package allow

import (
	"net/http"
	"time"
)

func connect() error { return nil }

func onLine() {
	for connect() != nil {
		time.Sleep(time.Second) //entrega:allow retry-loop the server that this process started comes up in a moment
	}
}

func onLineAbove() {
	for connect() != nil {
		//entrega:allow retry-loop the server that this process started comes up in a moment
		time.Sleep(time.Second)
	}
}

func withoutReason() {
	for connect() != nil {
		time.Sleep(time.Second) //entrega:allow retry-loop // want `retryowner/allow: this exception from retry-loop gives no reason; write why`
	}
}

func otherRule() {
	http.Get("") //entrega:allow retry-loop the wrong name // want `retryowner/http-client` `retryowner/allow: this exception from retry-loop silences nothing; remove it`
}

func unknownRule() {
	http.Get("") //entrega:allow http the wrong name // want `retryowner/http-client` `retryowner/allow: there is no rule "http"; name one of retry-loop, `
}

func noRule() {
	http.Get("") //entrega:allow // want `retryowner/http-client` `retryowner/allow: there is no rule ""`
}

//entrega:allow http-client nothing stands below // want `retryowner/allow: this exception from http-client silences nothing`

func tooFar() {
	//entrega:allow http-client two lines above // want `retryowner/allow: this exception from http-client silences nothing`

	http.Get("") // want `retryowner/http-client`
}
