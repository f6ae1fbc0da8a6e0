/** Why a run ran, or why it waits: one sentence, what can be done, the reasons, and back to where it all began. */
import { Link } from 'wouter';
import { Answer } from '../kit/answer.tsx';
import { Command } from '../kit/command.tsx';
import { Age } from '../time/times.tsx';
import { type Run, useWhy, type Why } from './use-runs.ts';
import { adviceOf } from './advice.ts';
import { sentence } from './sentence.ts';
import { linkOf, reasonLinks } from './why-links.ts';

export function WhyView({ run }: { readonly run: Run }) {
  const why = useWhy(run.id);
  const waits = run.finished_at === null && run.started_at === null;
  return (
    <Answer of={why} what="Reading why">
      {(data) => (
        <div className="why">
          <section className="why-summary" data-waits={waits ? '' : undefined}>
            <p>{waits ? whyItWaits(data) : sentence(data.summary)}</p>
            {data.next === null ? null : (
              <p className="why-next">
                <strong>{waits ? 'What to do' : 'What next'}</strong> <Advice next={data.next} />
              </p>
            )}
          </section>
          {data.reasons.length === 0 ? null : <Reasons why={data} />}
          {data.chain.length === 0 ? null : <Chain why={data} self={run.id} />}
        </div>
      )}
    </Answer>
  );
}

function Advice({ next }: { readonly next: string }) {
  return adviceOf(next).map(({ kind, text }) =>
    kind === 'command' ? <Command key={text}>{text}</Command> : <span key={text}>{text}</span>,
  );
}

/** The page has named the run and its instant already; what stands in its way is the first reason. */
function whyItWaits({ reasons: [first], summary }: Why): string {
  return first === undefined ? sentence(summary) : `It has not started: ${sentence(first.message, false)}`;
}

function Reasons({ why }: { readonly why: Why }) {
  return (
    <section aria-labelledby="why-reasons">
      <h2 id="why-reasons">In detail</h2>
      <ul className="why-reasons">
        {why.reasons.map((reason, index) => (
          // two reasons may be worded alike
          <li key={index}>
            {sentence(reason.message)}
            {reasonLinks(reason.data).map(({ href, label }) => (
              <Link key={href} href={href}>
                {label}
              </Link>
            ))}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Chain({ why, self }: { readonly why: Why; readonly self: string }) {
  return (
    <section aria-labelledby="why-chain">
      <h2 id="why-chain">How it came about, latest first</h2>
      <ol className="moments">
        {why.chain.map((link, index) => {
          const href = link.id === self ? undefined : linkOf(link, why.subject.job);
          return (
            <li key={index} data-what={link.what}>
              <span className="moment-what">
                {href === undefined ? sentence(link.message) : <Link href={href}>{sentence(link.message)}</Link>}
              </span>
              {link.at === null ? null : (
                <span className="moment-at">
                  <Age at={link.at} />
                </span>
              )}
            </li>
          );
        })}
      </ol>
    </section>
  );
}
