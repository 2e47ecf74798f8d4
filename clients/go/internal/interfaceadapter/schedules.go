// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"muster.example/muster"
)

func toldRetried(batches []muster.RetriedBatch) [][]any {
	told := [][]any{}
	for _, one := range batches {
		told = append(told, []any{one.Batch, one.Transactions, one.IsNew})
	}
	return told
}

func (a *adapter) retry(ctx context.Context, c call) (any, error) {
	if c.Lines == nil {
		retried, err := a.client.RetryAllRejections(ctx, c.Batch)
		return toldRetried(retried), err
	}
	retried, err := a.client.RetryRejections(ctx, c.Batch, c.Lines)
	return toldRetried(retried), err
}

func stamp(moment time.Time) any {
	if moment.IsZero() {
		return nil
	}
	return float64(moment.UnixMicro()) / 1e6
}

func scheduleOr(schedule *muster.Schedule, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return map[string]any{"name": schedule.Name, "revision": schedule.Revision, "job": schedule.Job, "cron": schedule.Cron,
		"time_zone": schedule.TimeZone, "at": stamp(schedule.At), "catch_up": schedule.CatchUp.String(),
		"labels": schedule.Labels, "content_bytes": schedule.ContentBytes, "paused": schedule.Paused,
		"next": stamp(schedule.Next), "last_batch": schedule.LastBatch, "problem": schedule.Problem,
		"ended": !schedule.Ended.IsZero(), "counts": []int64{schedule.Submitted, schedule.Missed, schedule.Failed}}, nil
}

func specOf(c call) muster.ScheduleSpec {
	spec := muster.ScheduleSpec{Name: c.Name, Job: c.Job, Cron: c.Cron, TimeZone: c.TimeZone, SLA: span(c.SLA),
		Labels: c.Labels}
	if c.At != 0 {
		spec.At = time.UnixMicro(int64(c.At * 1e6))
	}
	for _, rule := range []muster.CatchUp{muster.CatchUpNone, muster.CatchUpOnce, muster.CatchUpAll} {
		if rule.String() == c.CatchUp {
			spec.CatchUp = rule
		}
	}
	return spec
}

func (a *adapter) createSchedule(ctx context.Context, c call) (any, error) {
	content := muster.File(c.Path)
	if c.Records != nil {
		var err error
		if content, err = muster.JSONLines(c.Records); err != nil {
			return nil, err
		}
	}
	return scheduleOr(a.client.CreateSchedule(ctx, specOf(c), content))
}

func (a *adapter) listSchedules(ctx context.Context) (any, error) {
	schedules := []any{}
	for schedule, err := range a.client.ListSchedules(ctx) {
		told, err := scheduleOr(schedule, err)
		if err != nil {
			return nil, err
		}
		schedules = append(schedules, told)
	}
	return schedules, nil
}

func (a *adapter) doSchedule(ctx context.Context, c call) (any, error) {
	switch c.Call {
	case "create_schedule":
		return a.createSchedule(ctx, c)
	case "update_schedule":
		return scheduleOr(a.client.UpdateSchedule(ctx, specOf(c), c.Revision))
	case "get_schedule":
		return scheduleOr(a.client.GetSchedule(ctx, c.Name))
	case "list_schedules":
		return a.listSchedules(ctx)
	case "pause_schedule":
		return scheduleOr(a.client.PauseSchedule(ctx, c.Name))
	case "resume_schedule":
		return scheduleOr(a.client.ResumeSchedule(ctx, c.Name))
	case "run_schedule":
		return batchOr(a.client.RunSchedule(ctx, c.Name, c.RunID))
	case "delete_schedule":
		return nil, a.client.DeleteSchedule(ctx, c.Name)
	}
	return nil, fmt.Errorf("no call %s", c.Call)
}
