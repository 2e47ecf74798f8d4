package muster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// As those of muster's own command: see muster/rpc/limits.h for the reasons.
const (
	maxMessageBytes  = 4 << 20
	keepaliveTime    = 30 * time.Second
	keepaliveTimeout = 10 * time.Second
	minReconnectWait = 100 * time.Millisecond
	maxReconnectWait = 5 * time.Second
)

// gRPC loses messages of a stream when it tries it again, so Submit tries again by itself. A record of a
// Call that is tried again may be counted twice.
const serviceConfig = `{"methodConfig": [
  {"name": [{"service": "muster.v1.BatchService", "method": "Submit"},
            {"service": "muster.v1.CallService", "method": "Call"}]},
  {"name": [{}], "retryPolicy": {
    "maxAttempts": 5, "initialBackoff": "0.1s", "maxBackoff": "2s", "backoffMultiplier": 2,
    "retryableStatusCodes": ["UNAVAILABLE"]}}]}`

// pemFiles are paths: see Options and HandlerOptions.
type pemFiles struct{ ca, certificate, key string }

func (p pemFiles) wanted() bool { return p.ca != "" || p.certificate != "" || p.key != "" }

// read gives the authorities to trust, nil without a ca, and the certificate to show, nil without one.
func (p pemFiles) read() (*x509.CertPool, *shownCertificate, error) {
	if (p.certificate == "") != (p.key == "") {
		return nil, nil, errors.New("muster: certificate and key go together")
	}
	var authorities *x509.CertPool
	if p.ca != "" {
		pem, err := os.ReadFile(p.ca)
		if err != nil {
			return nil, nil, err
		}
		authorities = x509.NewCertPool()
		if !authorities.AppendCertsFromPEM(pem) {
			return nil, nil, fmt.Errorf("muster: %s has no certificate", p.ca)
		}
	}
	if p.certificate == "" {
		return authorities, nil, nil
	}
	own, err := tls.LoadX509KeyPair(p.certificate, p.key)
	if err != nil {
		return nil, nil, err
	}
	return authorities, &shownCertificate{files: p, last: &own}, nil
}

// shownCertificate is what the files hold at the time of each connection: certificates are renewed while
// a program runs. For several goroutines.
type shownCertificate struct {
	files pemFiles
	mutex sync.Mutex
	last  *tls.Certificate // shown, too, while the files cannot be read or do not fit each other
}

func (s *shownCertificate) now() (*tls.Certificate, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if read, err := tls.LoadX509KeyPair(s.files.certificate, s.files.key); err == nil {
		s.last = &read
	}
	return s.last, nil
}

// open connects with its first call, and again whenever it must.
func open(address string, files pemFiles) (*grpc.ClientConn, error) {
	transport := insecure.NewCredentials()
	if files.wanted() {
		authorities, own, err := files.read()
		if err != nil {
			return nil, err
		}
		config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities}
		if own != nil {
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				return own.now()
			}
		}
		transport = credentials.NewTLS(config)
	}
	wait := backoff.DefaultConfig
	wait.BaseDelay, wait.MaxDelay = minReconnectWait, maxReconnectWait
	return grpc.NewClient(address,
		grpc.WithTransportCredentials(transport),
		grpc.WithDefaultServiceConfig(serviceConfig),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: wait, MinConnectTimeout: 20 * time.Second}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes),
			grpc.MaxCallSendMsgSize(maxMessageBytes)))
}
