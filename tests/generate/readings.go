// Prints how Go reads PEM texts and certificate requests; see readings.py.
package main

import (
	"bufio"
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"time"
)

func blocks(text []byte) any {
	found, total := []any{}, len(text)
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		headers := map[string]string{}
		for key, value := range block.Headers {
			headers[key] = value
		}
		kind := hex.EncodeToString([]byte(block.Type))
		found = append(found, []any{kind, headers, hex.EncodeToString(block.Bytes), total - len(rest)})
	}
	return found
}

func words(texts []string) []string {
	found := []string{}
	for _, text := range texts {
		found = append(found, hex.EncodeToString([]byte(text)))
	}
	return found
}

// request reads a request and builds the certificate that a signer of Kubernetes builds for it.
func request(der []byte) any {
	read, err := x509.ParseCertificateRequest(der)
	if err == nil {
		err = read.CheckSignature()
	}
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	addresses, uris := []string{}, []string{}
	for _, address := range read.IPAddresses {
		addresses = append(addresses, string(address))
	}
	for _, uri := range read.URIs {
		uris = append(uris, uri.String())
	}
	seed := [ed25519.SeedSize]byte{1}
	key := ed25519.NewKeyFromSeed(seed[:])
	start := time.Date(2026, 11, 28, 11, 55, 0, 0, time.UTC)
	issuer := &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, SubjectKeyId: []byte("key"), PublicKey: key.Public()}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(255),
		Subject:               read.Subject,
		DNSNames:              read.DNSNames,
		IPAddresses:           read.IPAddresses,
		EmailAddresses:        read.EmailAddresses,
		URIs:                  read.URIs,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageDecipherOnly,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		NotBefore:             start,
		NotAfter:              start.Add(24 * time.Hour),
	}
	signed, err := x509.CreateCertificate(nil, template, issuer, read.PublicKey, key)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	var certificate struct {
		Part      asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}
	if _, err := asn1.Unmarshal(signed, &certificate); err != nil {
		panic(err)
	}
	return map[string]any{
		"common_name":   hex.EncodeToString([]byte(read.Subject.CommonName)),
		"organizations": words(read.Subject.Organization),
		"dns_names":     words(read.DNSNames),
		"emails":        words(read.EmailAddresses),
		"ips":           words(addresses),
		"uris":          words(uris),
		"certificate":   hex.EncodeToString(certificate.Part.FullBytes),
	}
}

// main answers each line, "pem HEX" or "request HEX", with a line of JSON.
func main() {
	lines, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		line := lines.Text()
		if text, ok := cut(line, "pem "); ok {
			out.Encode(blocks(text))
		} else if text, ok := cut(line, "request "); ok {
			out.Encode(request(text))
		}
	}
}

func cut(line, kind string) ([]byte, bool) {
	if len(line) < len(kind) || line[:len(kind)] != kind {
		return nil, false
	}
	text, err := hex.DecodeString(line[len(kind):])
	return text, err == nil
}
