import { describe, expect, it } from 'vitest';
import { newId } from '../../kernel/id.ts';
import { Digest, type DigestedEvent } from './digest.ts';

const run = (subject: string, job: string): DigestedEvent => ({
  topic: 'millrace_runs',
  type: 'run.finished',
  subject,
  actor: 'worker',
  body: JSON.stringify({ job, task: newId() }),
});

function digestOf(...events: readonly DigestedEvent[]): Digest {
  const digest = new Digest();
  for (const event of events) digest.addEvent(event);
  return digest;
}

describe('digests', () => {
  it('a digest names each job and run once', () => {
    const [job, a, b] = [newId(), newId(), newId()];
    expect(digestOf(run(a, job), run(a, job), run(b, job)).message()).toEqual({ jobs: [job], runs: [a, b] });
  });

  it('a digest names executions, and marks definitions of flows and work items', () => {
    const [a, b] = [newId(), newId()];
    const event = (topic: string, type: string, subject: string, actor: string | null = null): DigestedEvent => ({
      topic,
      type,
      subject,
      actor,
      body: '{"flow":"order"}',
    });
    const started = event('millrace_executions', 'execution.started', a);
    expect(digestOf(started, started).message()).toEqual({ executions: [a] });
    const answered = event('millrace_executions', 'workitem.answered', b, 'key:ann');
    expect(digestOf(started, answered).message()).toEqual({ people: true, workitems: true, executions: [a, b] });
    expect(digestOf(event('millrace_flows', 'flow.applied', a)).message()).toEqual({ flows: true });
    const many = digestOf(
      ...Array.from({ length: 300 }, () => event('millrace_executions', 'execution.done', newId())),
    );
    expect(many.message()).toEqual({ anyExecution: true });
    const merged = digestOf(started);
    merged.addAll(many);
    expect(merged.message()).toEqual({ anyExecution: true });
  });

  it('a digest distinguishes documents from runs, and people from machines', () => {
    const job = newId();
    const applied = { topic: 'millrace_jobs', type: 'job.changed', subject: job, actor: 'key:ann', body: '{}' };
    const project = {
      topic: 'millrace_projects',
      type: 'project.changed',
      subject: newId(),
      actor: 'key:ann',
      body: '{}',
    };
    expect(digestOf(applied).message()).toEqual({ people: true, jobs: [job], written: [job] });
    expect(digestOf({ ...applied, type: 'job.run' }).message()).toEqual({ people: true, jobs: [job] });
    expect(digestOf(project).message()).toEqual({ people: true, projects: true });
    expect(digestOf({ ...applied, topic: 'millrace_tokens', actor: 'scheduler' }).message()).toEqual({ jobs: [job] });
  });

  it('a digest names the job of a backfill, whose document has not changed', () => {
    const [job, backfill] = [newId(), newId()];
    const body = JSON.stringify({ job, instants: 3 });
    const done = { topic: 'millrace_jobs', type: 'backfill.done', subject: backfill, actor: 'scheduler', body };
    expect(digestOf(done).message()).toEqual({ jobs: [job] });
  });

  it('a digest reports pools, and does not count tasks and the installation as people', () => {
    const pool = { topic: 'millrace_jobs', type: 'pool.changed', subject: newId(), actor: 'key:ann', body: '{}' };
    expect(digestOf(pool).message()).toEqual({ people: true, pools: true });
    for (const actor of ['worker', 'scheduler', 'installation', `run:${newId()}`])
      expect(digestOf({ ...pool, actor }).message()).toEqual({ pools: true });
  });

  it('a digest names a run of a node, and no job', () => {
    const node = (subject: string): DigestedEvent => ({ ...run(subject, ''), body: '{"job":null,"execution":"e"}' });
    const digest = digestOf(node('a'));
    expect([digest.isEmpty, digest.message()]).toEqual([false, { runs: ['a'] }]);
    const nodes = Array.from({ length: 250 }, (_, i) => node(String(i)));
    expect(digestOf(...nodes).message()).toEqual({ many: true });
  });

  it('a job is found anywhere in the body of an event; without one, any job may have changed', () => {
    const job = newId();
    const event = {
      topic: 'millrace_runs',
      type: 'run.finished',
      subject: 'r',
      actor: 'worker',
      body: `{"reason":"x","job":"${job}"}`,
    };
    expect(digestOf(event).message()).toEqual({ jobs: [job], runs: ['r'] });
    for (const body of ['{}', 'no json', '{"job":7}'])
      expect(digestOf({ ...event, body }).message()).toEqual({ many: true });
  });

  it('a digest stays small, also after many merges', () => {
    const job = newId();
    const many = digestOf(...Array.from({ length: 1_000 }, () => run(newId(), job)));
    expect(many.message()).toEqual({ jobs: [job] });
    const merged = new Digest();
    for (let i = 0; i < 1_000; i++) merged.addAll(digestOf(run(newId(), newId())));
    expect(merged.message()).toEqual({ many: true });
    for (let i = 0; i < 300; i++)
      merged.addEvent({ topic: 'millrace_jobs', type: 'job.changed', subject: newId(), actor: 'worker', body: '{}' });
    expect(merged.message()).toEqual({ all: true });
  });

  it('a new digest is empty', () => {
    expect([new Digest().isEmpty, new Digest().message()]).toEqual([true, {}]);
    const late = new Digest();
    late.mark('late');
    expect([late.isEmpty, late.message()]).toEqual([false, { late: true }]);
  });
});
