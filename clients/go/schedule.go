// SPDX-License-Identifier: Apache-2.0

package muster

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"iter"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"muster.example/muster/internal/musterv1"
)

// What a schedule's batches may consist of, as ScheduleService.CreateSchedule says.
const maxScheduleBytes = 3 << 20

// CatchUp says what becomes of occurrences whose time passed while no initiator was there. A rule of a newer
// muster has no name here.
type CatchUp int

// The rules; zero is as CatchUpOnce.
const (
	CatchUpNone = CatchUp(musterv1.CatchUp_CATCH_UP_NONE) // they are missed
	CatchUpOnce = CatchUp(musterv1.CatchUp_CATCH_UP_ONCE) // the last of them is submitted
	CatchUpAll  = CatchUp(musterv1.CatchUp_CATCH_UP_ALL)  // each is, in order
)

func (r CatchUp) String() string {
	switch r {
	case CatchUpNone:
		return "none"
	case CatchUpOnce, 0:
		return "once"
	case CatchUpAll:
		return "all"
	}
	return fmt.Sprintf("rule %d", int(r))
}

// ScheduleSpec is what a schedule submits, and when: by Cron, or once, At a time.
type ScheduleSpec struct {
	Name, Job string
	Cron      string    // five fields, as the clock of TimeZone shows them
	TimeZone  string    // such as "Europe/Berlin"; empty: UTC
	At        time.Time // zero: it occurs by Cron
	CatchUp   CatchUp
	// As those of a Submission, for each batch.
	HandlerVersion, Tenant string
	SLA                    time.Duration
	Labels                 map[string]string
}

// Schedule is a schedule as it stood when it was asked for.
type Schedule struct {
	ScheduleSpec
	ID           string // new for each creation
	Revision     uint64 // of its spec: 1 when it is made, and one more with each update
	ContentBytes uint64
	Created      time.Time
	Paused       bool
	Next         time.Time // zero: there is none, or it is paused
	Last         time.Time // the last occurrence that was submitted; zero: none was
	LastBatch    uint64    // 0: none
	Problem      string    // why it did not do what it should; empty: nothing is wrong
	// Occurrences, since it was created.
	Submitted, Missed, Failed int64
	Ended                     time.Time // of one with At: when that was decided
}

// CreateSchedule has batches of content, at most 3 MiB, submitted as spec says. The same call again changes
// nothing.
//
// AlreadyExists: another schedule has the name. InvalidArgument: no schedule can be so; Violations names the
// field.
func (c *Client) CreateSchedule(ctx context.Context, spec ScheduleSpec, content Content) (*Schedule, error) {
	told, err := fromSpec(&spec)
	if err != nil {
		return nil, err
	}
	source, err := content.open()
	if err != nil {
		return nil, err
	}
	defer source.Close()
	// One byte more is for the server to refuse.
	whole, err := io.ReadAll(io.LimitReader(source, maxScheduleBytes+1))
	if err != nil {
		return nil, err
	}
	ctx, cancel := within(ctx, c.options.Timeout)
	defer cancel()
	response, err := c.schedules.CreateSchedule(ctx,
		&musterv1.CreateScheduleRequest{Spec: told, Content: whole})
	if err != nil {
		return nil, fromRPC(err)
	}
	return toSchedule(response.GetSchedule()), nil
}

// UpdateSchedule gives the schedule spec.Name all of spec, if it is at the expected revision, 0: at any. It keeps
// its content, and goes on with its next occurrence; what came before is not made up for. The same call again
// changes nothing.
//
// Aborted: it is at another revision. FailedPrecondition: it was to occur once, and has ended. Unavailable: an
// occurrence is being submitted; try again. Otherwise the errors are those of CreateSchedule.
func (c *Client) UpdateSchedule(ctx context.Context, spec ScheduleSpec, expectedRevision uint64) (*Schedule, error) {
	told, err := fromSpec(&spec)
	if err != nil {
		return nil, err
	}
	request := &musterv1.UpdateScheduleRequest{Spec: told}
	if expectedRevision != 0 {
		request.ExpectedRevision = &expectedRevision
	}
	ctx, cancel := within(ctx, c.options.Timeout)
	defer cancel()
	response, err := c.schedules.UpdateSchedule(ctx, request)
	if err != nil {
		return nil, fromRPC(err)
	}
	return toSchedule(response.GetSchedule()), nil
}

// GetSchedule gives where the schedule stands. NotFound: there is none.
func (c *Client) GetSchedule(ctx context.Context, name string) (*Schedule, error) {
	ctx, cancel := within(ctx, c.options.Timeout)
	defer cancel()
	response, err := c.schedules.GetSchedule(ctx, &musterv1.GetScheduleRequest{Name: name})
	if err != nil {
		return nil, fromRPC(err)
	}
	return toSchedule(response.GetSchedule()), nil
}

// ListSchedules gives all schedules in order of name, asked for page by page.
func (c *Client) ListSchedules(ctx context.Context) iter.Seq2[*Schedule, error] {
	return func(yield func(*Schedule, error) bool) {
		for request := (&musterv1.ListSchedulesRequest{}); ; {
			asking, cancel := within(ctx, c.options.Timeout)
			response, err := c.schedules.ListSchedules(asking, request)
			cancel()
			if err != nil {
				yield(nil, fromRPC(err))
				return
			}
			for _, found := range response.GetSchedules() {
				if !yield(toSchedule(found), nil) {
					return
				}
			}
			if request.PageToken = response.GetNextPageToken(); request.PageToken == "" {
				return
			}
		}
	}
}

// PauseSchedule has it submit nothing until it is resumed.
func (c *Client) PauseSchedule(ctx context.Context, name string) (*Schedule, error) {
	ctx, cancel := within(ctx, c.options.Timeout)
	defer cancel()
	response, err := c.schedules.PauseSchedule(ctx, &musterv1.PauseScheduleRequest{Name: name})
	if err != nil {
		return nil, fromRPC(err)
	}
	return toSchedule(response.GetSchedule()), nil
}

// ResumeSchedule has it go on with its next occurrence; what it left out is not made up for.
func (c *Client) ResumeSchedule(ctx context.Context, name string) (*Schedule, error) {
	ctx, cancel := within(ctx, c.options.Timeout)
	defer cancel()
	response, err := c.schedules.ResumeSchedule(ctx, &musterv1.ResumeScheduleRequest{Name: name})
	if err != nil {
		return nil, fromRPC(err)
	}
	return toSchedule(response.GetSchedule()), nil
}

// RunSchedule submits a batch of it now. The same runID never makes a second one; with an empty one, each call
// makes one.
func (c *Client) RunSchedule(ctx context.Context, name, runID string) (*Batch, error) {
	if runID == "" {
		runID = "go-" + rand.Text()
	}
	asking, cancel := within(ctx, c.options.Timeout)
	defer cancel()
	response, err := c.schedules.RunSchedule(asking, &musterv1.RunScheduleRequest{Name: name, RunId: runID})
	if err != nil {
		return nil, fromRPC(err)
	}
	return c.Get(ctx, response.GetBatch())
}

// DeleteSchedule deletes it; its batches stay.
func (c *Client) DeleteSchedule(ctx context.Context, name string) error {
	ctx, cancel := within(ctx, c.options.Timeout)
	defer cancel()
	if _, err := c.schedules.DeleteSchedule(ctx, &musterv1.DeleteScheduleRequest{Name: name}); err != nil {
		return fromRPC(err)
	}
	return nil
}

func fromSpec(spec *ScheduleSpec) (*musterv1.ScheduleSpec, error) {
	if spec.Cron != "" && !spec.At.IsZero() {
		return nil, &Error{Code: codes.InvalidArgument, Message: "a schedule occurs by Cron or At a time, not both"}
	}
	told := &musterv1.ScheduleSpec{Name: spec.Name, Job: spec.Job, TimeZone: spec.TimeZone,
		CatchUp: musterv1.CatchUp(spec.CatchUp), Tenant: spec.Tenant, Labels: spec.Labels}
	if spec.At.IsZero() {
		told.When = &musterv1.ScheduleSpec_Cron{Cron: spec.Cron}
	} else {
		told.When = &musterv1.ScheduleSpec_At{At: timestamppb.New(spec.At)}
	}
	if spec.HandlerVersion != "" {
		told.HandlerVersion = &spec.HandlerVersion
	}
	if spec.SLA != 0 {
		told.Sla = durationpb.New(spec.SLA)
	}
	return told, nil
}

func toSchedule(found *musterv1.Schedule) *Schedule {
	spec := found.GetSpec()
	schedule := &Schedule{
		ScheduleSpec: ScheduleSpec{
			Name:           spec.GetName(),
			Job:            spec.GetJob(),
			Cron:           spec.GetCron(),
			TimeZone:       spec.GetTimeZone(),
			At:             toTime(spec.GetAt()),
			CatchUp:        CatchUp(spec.GetCatchUp()),
			HandlerVersion: spec.GetHandlerVersion(),
			Tenant:         spec.GetTenant(),
			SLA:            spec.GetSla().AsDuration(),
			Labels:         spec.GetLabels(),
		},
		ID:           found.GetId(),
		Revision:     found.GetRevision(),
		ContentBytes: found.GetContentBytes(),
		Created:      toTime(found.GetCreated()),
		Paused:       found.GetPaused(),
		Next:         toTime(found.GetNext()),
		Last:         toTime(found.GetLast()),
		LastBatch:    found.GetLastBatch(),
		Problem:      found.GetProblem(),
		Submitted:    found.GetSubmitted(),
		Missed:       found.GetMissed(),
		Failed:       found.GetFailed(),
		Ended:        toTime(found.GetEnded()),
	}
	if schedule.CatchUp == 0 {
		schedule.CatchUp = CatchUpOnce
	}
	return schedule
}
