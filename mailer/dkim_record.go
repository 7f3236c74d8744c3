package mailer

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"fmt"
)

// record is the TXT record that the key needs in DNS (RFC 6376, section 3.6.1; RFC 8463, section 4 for Ed25519).
func (d DKIMSettings) record() (string, error) {
	key, err := d.signer()
	if err != nil {
		return "", err
	}
	if public, ok := key.Public().(ed25519.PublicKey); ok {
		return "v=DKIM1; k=ed25519; p=" + base64.StdEncoding.EncodeToString(public), nil
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return "", fmt.Errorf("encode the public key: %w", err)
	}
	return "v=DKIM1; k=rsa; p=" + base64.StdEncoding.EncodeToString(der), nil
}
