// SPDX-License-Identifier: Apache-2.0

// azqueue of Go as a client of scenarios_test.py: reads an operation in JSON from each line of its input, does it
// by the SDK, and writes what the SDK answers. CONNECTION names the gateway; with OWN_RETRIES the SDK repeats calls
// as it does by itself.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2/sas"
)

type corsRule struct {
	Origins string `json:"origins"`
	Methods string `json:"methods"`
	MaxAge  int32  `json:"max_age"`
}

type accessPolicy struct {
	ID          string    `json:"id"`
	Permissions string    `json:"permissions"`
	Start       time.Time `json:"start"`
	Expiry      time.Time `json:"expiry"`
}

type step struct {
	Do          string          `json:"do"`
	Queue       string          `json:"queue"`
	Prefix      string          `json:"prefix"`
	PageSize    *int32          `json:"page_size"`
	Metadata    json.RawMessage `json:"metadata"`
	Text        string          `json:"text"`
	TTL         *int32          `json:"ttl"`
	Visibility  *int32          `json:"visibility"`
	Count       *int32          `json:"count"`
	ID          string          `json:"id"`
	Receipt     string          `json:"receipt"`
	CORS        []corsRule      `json:"cors"`
	LoggingDays int32           `json:"logging_days"`
	Policies    []accessPolicy  `json:"policies"`
	Permissions string          `json:"permissions"`
	Policy      string          `json:"policy"`
	Types       string          `json:"types"`
	With        string          `json:"with"`
	Encode      string          `json:"encode"`
	Strategy    string          `json:"strategy"`
}

type answer map[string]any

var (
	settings = connectionSettings()
	ctx      = context.Background()
)

func connectionSettings() map[string]string {
	found := map[string]string{}
	for _, pair := range strings.Split(os.Getenv("CONNECTION"), ";") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			found[name] = value
		}
	}
	return found
}

func options() *azqueue.ClientOptions {
	if os.Getenv("OWN_RETRIES") != "" {
		return nil
	}
	return &azqueue.ClientOptions{ClientOptions: policy.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}}
}

func keyOfAccount() (*azqueue.SharedKeyCredential, error) {
	return azqueue.NewSharedKeyCredential(settings["AccountName"], settings["AccountKey"])
}

func serviceOf(s step) (*azqueue.ServiceClient, error) {
	if s.With != "" {
		return azqueue.NewServiceClientWithNoCredential(settings["QueueEndpoint"]+"?"+s.With, options())
	}
	if s.Do == "GetServiceStats" {
		key, err := keyOfAccount()
		if err != nil {
			return nil, err
		}
		return azqueue.NewServiceClientWithSharedKeyCredential(settings["QueueSecondaryEndpoint"], key, options())
	}
	return azqueue.NewServiceClientFromConnectionString(os.Getenv("CONNECTION"), options())
}

// NewQueueClient of a service with a SAS puts the name behind it.
func queueOf(s step, service *azqueue.ServiceClient) (*azqueue.QueueClient, error) {
	if s.With != "" {
		return azqueue.NewQueueClientWithNoCredential(
			settings["QueueEndpoint"]+"/"+s.Queue+"?"+s.With, options())
	}
	return service.NewQueueClient(s.Queue), nil
}

func metadataOf(s step) map[string]*string {
	var metadata map[string]*string
	if s.Metadata == nil || json.Unmarshal(s.Metadata, &metadata) != nil {
		return nil
	}
	return metadata
}

// GetSASURL of the clients makes a SAS for HTTPS alone; so these are signed as it signs its own.
func sasFrom(signed sas.QueryParameters, err error) (answer, error) {
	return answer{"sas": signed.Encode()}, err
}

func makeAccountSas(s step) (answer, error) {
	key, err := keyOfAccount()
	if err != nil {
		return nil, err
	}
	return sasFrom(sas.AccountSignatureValues{
		Protocol: sas.ProtocolHTTPSandHTTP, Permissions: s.Permissions, ResourceTypes: s.Types,
		ExpiryTime: time.Now().UTC().Add(time.Hour)}.SignWithSharedKey(key))
}

func makeQueueSas(s step) (answer, error) {
	key, err := keyOfAccount()
	if err != nil {
		return nil, err
	}
	values := sas.QueueSignatureValues{QueueName: s.Queue, Identifier: s.Policy}
	if s.Policy == "" {
		values.Protocol = sas.ProtocolHTTPSandHTTP
		values.Permissions = s.Permissions
		values.ExpiryTime = time.Now().UTC().Add(time.Hour)
	}
	return sasFrom(values.SignWithSharedKey(key))
}

func ofService(s step, service *azqueue.ServiceClient) (answer, error) {
	switch s.Do {
	case "ListQueues":
		pages, metadata := [][]string{}, []map[string]*string{}
		pager := service.NewListQueuesPager(&azqueue.ListQueuesOptions{
			Prefix: &s.Prefix, MaxResults: s.PageSize,
			Include: azqueue.ListQueuesInclude{Metadata: string(s.Metadata) == "true"}})
		for pager.More() {
			page, err := pager.NextPage(ctx)
			if err != nil {
				return nil, err
			}
			names := []string{}
			for _, queue := range page.Queues {
				names = append(names, *queue.Name)
				metadata = append(metadata, queue.Metadata)
			}
			pages = append(pages, names)
		}
		return answer{"pages": pages, "metadata": metadata}, nil
	case "GetServiceProperties":
		found, err := service.GetServiceProperties(ctx, nil)
		if err != nil {
			return nil, err
		}
		rules := []corsRule{}
		for _, rule := range found.CORS {
			rules = append(rules, corsRule{*rule.AllowedOrigins, *rule.AllowedMethods, *rule.MaxAgeInSeconds})
		}
		return answer{"cors": rules, "logging_days": found.Logging.RetentionPolicy.Days}, nil
	case "SetServiceProperties":
		rules := []*azqueue.CORSRule{}
		for _, rule := range s.CORS {
			rules = append(rules, &azqueue.CORSRule{AllowedOrigins: &rule.Origins, AllowedMethods: &rule.Methods,
				AllowedHeaders: to.Ptr("*"), ExposedHeaders: to.Ptr("*"), MaxAgeInSeconds: &rule.MaxAge})
		}
		_, err := service.SetProperties(ctx, &azqueue.SetPropertiesOptions{CORS: rules, Logging: &azqueue.Logging{
			Version: to.Ptr("1.0"), Read: to.Ptr(true), Write: to.Ptr(false), Delete: to.Ptr(false),
			RetentionPolicy: &azqueue.RetentionPolicy{Enabled: to.Ptr(true), Days: &s.LoggingDays}}})
		return nil, err
	case "GetServiceStats":
		found, err := service.GetStatistics(ctx, nil)
		if err != nil {
			return nil, err
		}
		return answer{"status": found.GeoReplication.Status}, nil
	case "MakeAccountSas":
		return makeAccountSas(s)
	}
	return nil, fmt.Errorf("what is %s?", s.Do)
}

func ofQueue(s step, queue *azqueue.QueueClient) (answer, error) {
	switch s.Do {
	case "CreateQueue":
		_, err := queue.Create(ctx, &azqueue.CreateOptions{Metadata: metadataOf(s)})
		return nil, err
	case "DeleteQueue":
		_, err := queue.Delete(ctx, nil)
		return nil, err
	case "GetQueueMetadata":
		found, err := queue.GetProperties(ctx, nil)
		if err != nil {
			return nil, err
		}
		return answer{"metadata": found.Metadata, "count": found.ApproximateMessagesCount}, nil
	case "SetQueueMetadata":
		_, err := queue.SetMetadata(ctx, &azqueue.SetMetadataOptions{Metadata: metadataOf(s)})
		return nil, err
	case "GetQueueAcl":
		found, err := queue.GetAccessPolicy(ctx, nil)
		if err != nil {
			return nil, err
		}
		policies := []accessPolicy{}
		for _, one := range found.SignedIdentifiers {
			policies = append(policies, accessPolicy{
				*one.ID, *one.AccessPolicy.Permission, *one.AccessPolicy.Start, *one.AccessPolicy.Expiry})
		}
		return answer{"policies": policies}, nil
	case "SetQueueAcl":
		policies := []*azqueue.SignedIdentifier{}
		for _, one := range s.Policies {
			policies = append(policies, &azqueue.SignedIdentifier{ID: &one.ID, AccessPolicy: &azqueue.AccessPolicy{
				Permission: &one.Permissions, Start: &one.Start, Expiry: &one.Expiry}})
		}
		_, err := queue.SetAccessPolicy(ctx, &azqueue.SetAccessPolicyOptions{QueueACL: policies})
		return nil, err
	case "MakeQueueSas":
		return makeQueueSas(s)
	case "KedaMetric":
		return kedaMetric(s, queue)
	}
	return ofMessages(s, queue)
}

func ofMessages(s step, queue *azqueue.QueueClient) (answer, error) {
	switch s.Do {
	case "PutMessage":
		put, err := queue.EnqueueMessage(ctx, s.Text,
			&azqueue.EnqueueMessageOptions{TimeToLive: s.TTL, VisibilityTimeout: s.Visibility})
		if err != nil {
			return nil, err
		}
		one := put.Messages[0]
		return answer{"id": one.MessageID, "receipt": one.PopReceipt, "expires": one.ExpirationTime.Year()}, nil
	case "GetMessages":
		got, err := queue.DequeueMessages(ctx,
			&azqueue.DequeueMessagesOptions{NumberOfMessages: s.Count, VisibilityTimeout: s.Visibility})
		messages := []answer{}
		for _, one := range got.Messages {
			messages = append(messages, answer{"id": one.MessageID, "text": one.MessageText,
				"receipt": one.PopReceipt, "dequeue_count": one.DequeueCount})
		}
		return answer{"messages": messages}, err
	case "PeekMessages":
		peeked, err := queue.PeekMessages(ctx, &azqueue.PeekMessagesOptions{NumberOfMessages: s.Count})
		messages := []answer{}
		for _, one := range peeked.Messages {
			messages = append(messages,
				answer{"id": one.MessageID, "text": one.MessageText, "dequeue_count": one.DequeueCount})
		}
		return answer{"messages": messages}, err
	case "UpdateMessage":
		updated, err := queue.UpdateMessage(ctx, s.ID, s.Receipt, s.Text,
			&azqueue.UpdateMessageOptions{VisibilityTimeout: s.Visibility})
		return answer{"receipt": updated.PopReceipt}, err
	case "DeleteMessage":
		_, err := queue.DeleteMessage(ctx, s.ID, s.Receipt, nil)
		return nil, err
	case "ClearMessages":
		_, err := queue.ClearMessages(ctx, nil)
		return nil, err
	}
	return nil, fmt.Errorf("what is %s?", s.Do)
}

func version() answer {
	build, _ := debug.ReadBuildInfo()
	for _, module := range build.Deps {
		if strings.Contains(module.Path, "/azqueue") {
			return answer{"version": strings.TrimPrefix(module.Version, "v")}
		}
	}
	return nil
}

func run(s step) (answer, error) {
	if s.Encode != "" {
		return answer{"lacks": s.Encode}, nil
	}
	if s.Do == "Version" {
		return version(), nil
	}
	service, err := serviceOf(s)
	if err != nil {
		return nil, err
	}
	if s.Queue == "" {
		return ofService(s, service)
	}
	queue, err := queueOf(s, service)
	if err != nil {
		return nil, err
	}
	return ofQueue(s, queue)
}

func main() {
	lines := bufio.NewReader(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var s step
		if err := json.Unmarshal(line, &s); err != nil {
			panic(err)
		}
		found, err := run(s)
		var refused *azcore.ResponseError
		if errors.As(err, &refused) {
			found = answer{"refused": fmt.Sprintf("%d %s", refused.StatusCode, refused.ErrorCode)}
		} else if err != nil {
			panic(err)
		}
		if found == nil {
			found = answer{}
		}
		if err := out.Encode(found); err != nil {
			panic(err)
		}
	}
}
