import { expect, it } from 'vitest';
import { makeTask, Recorder } from '../../../test/conformance/task.ts';
import { newId } from '../../kernel/id.ts';
import type { Task, WorkerIdentity } from '../contract.ts';
import { type FunctionContext, functionRuntime, type TaskFunctions } from './function.ts';
import { workKinds } from '../kinds.ts';
import { makeRuntimes } from '../runtimes.ts';

const never = new AbortController().signal;

function call(name: string, input: unknown = null): Task {
  return makeTask({ kind: 'function', name, input });
}

it('a function gets its input and the facts of its run', async () => {
  const seen: { input: unknown; context: FunctionContext }[] = [];
  const functions: TaskFunctions = { f: (input, context: FunctionContext) => seen.push({ input, context }) };
  const task = call('f', { a: [1] });
  expect(await functionRuntime({ functions }).run(task, new Recorder(), never)).toMatchObject({ state: 'success' });
  const [first] = seen;
  expect(first?.input).toEqual({ a: [1] });
  expect(first?.context).toMatchObject({ run: task.facts.run, attempt: 1, idempotencyKey: task.facts.run, params: {} });
  expect(first?.context.instant).toEqual(new Date('2026-01-02T03:04:05Z'));
});

it('an unknown name is an error that lists the registered names', async () => {
  const runtime = functionRuntime({ functions: { beta: () => 1, alpha: () => 1 } });
  for (const name of ['gamma', 'constructor', '__proto__']) {
    const outcome = await runtime.run(call(name), new Recorder(), never);
    expect(outcome.state).toBe('error');
    expect(outcome.reason).toContain(`"${name}"`);
    expect(outcome.reason).toContain('"alpha", "beta"');
  }
});

it('a thrown error is a failure, and its stack goes to the log', async () => {
  const functions: TaskFunctions = {
    error: async () => await Promise.reject(new TypeError('broken')),
    text: async () => await Promise.reject('only text'),
  };
  const output = new Recorder();
  const runtime = functionRuntime({ functions });
  expect(await runtime.run(call('error'), output, never)).toMatchObject({ state: 'failure', reason: 'broken' });
  expect(output.text('err')).toMatch(/^TypeError: broken\n\s+at /);
  expect(await runtime.run(call('text'), output, never)).toMatchObject({ state: 'failure', reason: 'only text' });
});

it('a function that returns after it was abandoned has no effect', async () => {
  const control = new AbortController();
  const output = new Recorder();
  let comeBack = (): void => {};
  const late = new Promise<void>((resolve) => {
    comeBack = resolve;
  });
  const functions: TaskFunctions = {
    slow: async (_, { log }) => {
      control.abort('timeout');
      await late;
      log('late');
      throw new Error('too late');
    },
  };
  const outcome = await functionRuntime({ functions, graceMs: 20 }).run(call('slow'), output, control.signal);
  expect(outcome.state).toBe('failure');
  expect(outcome.reason).toContain('20 ms');
  comeBack();
  await late;
  await new Promise((resolve) => setImmediate(resolve));
  expect(output.pieces).toEqual([]);
});

it('a worker without functions does not serve the kind function', () => {
  const worker = (): WorkerIdentity => ({ worker: newId(), incarnation: 1 });
  const served = (functions: TaskFunctions): string[] =>
    makeRuntimes(workKinds, { functions, environment: {}, worker }).flatMap((runtime) => runtime.serves);
  expect(served({})).toEqual(['none', 'process', 'docker', 'http']);
  expect(served({ f: () => 1 })).toEqual(['none', 'function', 'process', 'docker', 'http']);
});
