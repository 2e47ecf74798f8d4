// SPDX-License-Identifier: Apache-2.0

package muster

import (
	"context"

	"muster.example/muster/internal/musterv1"
)

// fakeReports is an initiator that lists controllers, and the controller.
type fakeReports struct {
	musterv1.UnimplementedMeshServiceServer
	musterv1.UnimplementedReportServiceServer
	address    string
	unlisted   int // the first answers list no controller; below 0: none does
	listed     int // answers so far
	rejections []*musterv1.RejectedTransaction
	endless    bool // the output has always one more page
}

func (f *fakeReports) ListInstances(context.Context, *musterv1.ListInstancesRequest) (
	*musterv1.ListInstancesResponse, error) {
	f.listed++
	if f.unlisted < 0 || f.listed <= f.unlisted {
		return &musterv1.ListInstancesResponse{}, nil
	}
	return &musterv1.ListInstancesResponse{Instances: []*musterv1.Instance{
		{Info: &musterv1.InstanceInfo{Address: f.address}}}}, nil
}

func (f *fakeReports) GetReport(_ *musterv1.GetReportRequest, stream musterv1.ReportService_GetReportServer) error {
	err := stream.Send(&musterv1.GetReportResponse{Part: &musterv1.GetReportResponse_Schema{
		Schema: &musterv1.GroupSchema{Name: "by_customer", Keys: []string{"customer"},
			Measures: []*musterv1.MeasureSchema{{Name: "revenue", Scale: 2}}}}})
	if err != nil {
		return err
	}
	return stream.Send(&musterv1.GetReportResponse{Part: &musterv1.GetReportResponse_Rows{
		Rows: &musterv1.ReportRows{Rows: []*musterv1.PartialRow{{Keys: []string{"Ada"}, Measures: []string{"1.50"}}}}}})
}

func (f *fakeReports) GetOutput(context.Context, *musterv1.GetOutputRequest) (*musterv1.GetOutputResponse, error) {
	next := ""
	if f.endless {
		next = "more"
	}
	return &musterv1.GetOutputResponse{NextPageToken: next,
		Columns: []*musterv1.OutputColumn{{Name: "note", Type: musterv1.OutputType_OUTPUT_TYPE_TEXT}},
		Records: []*musterv1.OutputRecord{{Line: 1, Fields: []string{"paid"}}}}, nil
}

func (f *fakeReports) ListRejections(_ context.Context, request *musterv1.ListRejectionsRequest) (
	*musterv1.ListRejectionsResponse, error) {
	if request.After != nil {
		return &musterv1.ListRejectionsResponse{}, nil
	}
	return &musterv1.ListRejectionsResponse{Rejections: f.rejections}, nil
}

// fakeStreams takes a member in, hands it one event, and then says nothing more.
type fakeStreams struct {
	musterv1.UnimplementedStreamServiceServer
	answers chan string // hears how the event ended; nil: no one hears it
}

func (f *fakeStreams) ProcessEvents(call musterv1.StreamService_ProcessEventsServer) error {
	if _, err := call.Recv(); err != nil {
		return err
	}
	for _, said := range []*musterv1.ProcessEventsResponse{
		{Message: &musterv1.ProcessEventsResponse_Member{Member: "me"}},
		{Message: &musterv1.ProcessEventsResponse_Opened{Opened: &musterv1.PartitionOpened{}}},
		{Message: &musterv1.ProcessEventsResponse_Event{Event: &musterv1.PartitionEvent{Event: &musterv1.StreamEvent{Offset: 1}}}},
	} {
		if err := call.Send(said); err != nil {
			return err
		}
	}
	if f.answers != nil {
		answer, err := call.Recv()
		if err != nil {
			return err
		}
		f.answers <- answer.GetHandled().GetError()
	}
	<-call.Context().Done()
	return nil
}
