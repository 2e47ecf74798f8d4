// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

// What the scaler for Azure queues of KEDA 2.21 asks, by the client that it asks with: the length of a queue, and
// whether that is above 0. Its strategy visibleonly counts what a peek shows, as far as a peek shows all.
func kedaMetric(s step, queue *azqueue.QueueClient) (answer, error) {
	mostPeeked := int32(32)
	if s.Strategy == "visibleonly" {
		peeked, err := queue.PeekMessages(ctx, &azqueue.PeekMessagesOptions{NumberOfMessages: &mostPeeked})
		if err != nil {
			return nil, err
		}
		if length := len(peeked.Messages); length < int(mostPeeked) {
			return answer{"metric": length, "active": length > 0}, nil
		}
	}
	found, err := queue.GetProperties(ctx, nil)
	if err != nil {
		return nil, err
	}
	length := *found.ApproximateMessagesCount
	return answer{"metric": length, "active": length > 0}, nil
}
