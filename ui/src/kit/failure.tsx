/** An error, with the server's message if there is one, and a button to retry. */
import { CallFailed } from '../../../src/http/client.ts';

interface Props {
  readonly error: Error;
  readonly retry?: () => unknown;
}

export function sentenceOf(error: Error): string {
  if (!(error instanceof CallFailed)) return 'The server does not answer. Is it running, and is this machine online?';
  const sentence = error.problem?.detail ?? `The server answered ${error.status}.`;
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}

function titleOf(error: Error): string {
  if (!(error instanceof CallFailed)) return 'The server cannot be reached';
  return error.problem?.title ?? 'Something went wrong';
}

/** The server understood and said no: asking again gets the same answer. */
function isRefusal(error: Error): boolean {
  return error instanceof CallFailed && error.status < 500;
}

export function Failure({ error, retry }: Props) {
  const problem = error instanceof CallFailed ? error.problem : undefined;
  return (
    <section className="notice failed" role="alert">
      <h2>{titleOf(error)}</h2>
      <p>{sentenceOf(error)}</p>
      {problem?.faults === undefined || problem.faults.length < 2 ? null : (
        <ul className="faults">
          {problem.faults.map(({ path, message }) => (
            <li key={`${path} ${message}`}>
              <code>{path}</code> {message}
            </li>
          ))}
        </ul>
      )}
      {retry === undefined || isRefusal(error) ? null : (
        <button type="button" className="button" onClick={() => void retry()}>
          Try again
        </button>
      )}
    </section>
  );
}

/** The same within a line, for an action that did not go through. */
export function InlineFailure({ error }: { readonly error: Error | null }) {
  if (error === null) return null;
  return (
    <span className="inline-failure" role="alert">
      {sentenceOf(error)}
    </span>
  );
}
