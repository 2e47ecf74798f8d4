// SPDX-License-Identifier: Apache-2.0

package muster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
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

// read is for both sides of a connection: the authorities to trust, where a ca is named, and the certificate
// to show, where one is.
func (p pemFiles) read() (*tls.Config, error) {
	if (p.certificate == "") != (p.key == "") {
		return nil, errors.New("muster: certificate and key go together")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if p.ca != "" {
		pem, err := os.ReadFile(p.ca)
		if err != nil {
			return nil, err
		}
		authorities := x509.NewCertPool()
		if !authorities.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("muster: %s has no certificate", p.ca)
		}
		config.RootCAs = authorities
		config.ClientCAs, config.ClientAuth = authorities, tls.RequireAndVerifyClientCert
	}
	if p.certificate != "" {
		own, err := tls.LoadX509KeyPair(p.certificate, p.key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{own}
		// Whichever authorities the server names: it may know more than it says.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }
	}
	return config, nil
}

// renewedTLS is what the files hold at the time of each connection: certificates and authorities are renewed
// while a program runs. For several goroutines.
type renewedTLS struct {
	credentials.TransportCredentials // what does not depend on the files
	files                            pemFiles
	mutex                            sync.Mutex
	last                             *tls.Config // counts, too, while the files cannot be read or do not fit each other
}

func newRenewedTLS(files pemFiles) (*renewedTLS, error) {
	config, err := files.read()
	if err != nil {
		return nil, err
	}
	return &renewedTLS{TransportCredentials: credentials.NewTLS(config), files: files, last: config}, nil
}

func (r *renewedTLS) now() credentials.TransportCredentials {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if config, err := r.files.read(); err == nil {
		r.last = config
	}
	return credentials.NewTLS(r.last)
}

func (r *renewedTLS) ClientHandshake(ctx context.Context, authority string, connection net.Conn) (
	net.Conn, credentials.AuthInfo, error) {
	return r.now().ClientHandshake(ctx, authority, connection)
}

func (r *renewedTLS) ServerHandshake(connection net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return r.now().ServerHandshake(connection)
}

func (r *renewedTLS) Clone() credentials.TransportCredentials { return r }

// checkAddress: gRPC takes 443 for a port that is missing, and looks for hosts of any name.
func checkAddress(address string) error {
	host, digits, err := net.SplitHostPort(address)
	port, noNumber := strconv.ParseUint(digits, 10, 16)
	if err != nil || noNumber != nil || port == 0 || host == "" || strings.ContainsAny(host, "/@ \t\r\n") {
		return fmt.Errorf("muster: the address %q must be HOST:PORT, such as localhost:7700 or [::1]:7700", address)
	}
	return nil
}

// open connects with its first call, and again whenever it must.
func open(address string, files pemFiles) (*grpc.ClientConn, error) {
	if err := checkAddress(address); err != nil {
		return nil, err
	}
	transport := insecure.NewCredentials()
	if files.wanted() {
		renewed, err := newRenewedTLS(files)
		if err != nil {
			return nil, err
		}
		transport = renewed
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
