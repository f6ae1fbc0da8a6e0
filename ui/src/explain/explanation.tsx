/**
 * Why something ran, fired or waits, as the server explains it: one sentence, what can be done, the reasons, and back to
 * where it all began. In a panel it is brief: no chain, no headings.
 */
import { Link } from 'wouter';
import { Command } from '../kit/command.tsx';
import '../kit/moments.css';
import { Age } from '../time/times.tsx';
import { adviceOf } from './advice.ts';
import './explanation.css';
import { sentence } from './sentence.ts';
import { linkOf, reasonLinks, type Why } from './why-links.ts';

/** Tokens and triggers are explained in the same shape. */
type Reason = Why['reasons'][number];

interface Props {
  readonly why: Why;
  /** Whether it has not started: then what is in its way matters most. */
  readonly waits: boolean;
}

export function Explanation({ why, waits }: Props) {
  return (
    <div className="why">
      <section className="why-summary" data-waits={waits ? '' : undefined}>
        <p>{waits ? whyItWaits(why) : sentence(why.summary)}</p>
        {why.next === null ? null : <Next next={why.next} label={waits ? 'What to do' : 'What next'} />}
      </section>
      {why.reasons.length === 0 ? null : (
        <section aria-labelledby="why-reasons">
          <h2 id="why-reasons">In detail</h2>
          <Reasons reasons={why.reasons} />
        </section>
      )}
      {why.chain.length === 0 ? null : <Chain why={why} />}
    </div>
  );
}

/** Where its subject is named already: the first reason says the most in the fewest words. */
export function BriefExplanation({ why: { summary, reasons, next } }: Pick<Props, 'why'>) {
  const [first, ...rest] = reasons;
  return (
    <div className="why" data-brief="">
      <p className="why-summary">{first === undefined ? sentence(summary) : <ReasonText reason={first} />}</p>
      {rest.length === 0 ? null : <Reasons reasons={rest} />}
      {next === null ? null : <Next next={next} />}
    </div>
  );
}

/** The page has named the run and its instant already; what stands in its way is the first reason. */
function whyItWaits({ reasons: [first], summary }: Why): string {
  return first === undefined ? sentence(summary) : `It has not started: ${sentence(first.message, false)}`;
}

/** What to do, with the commands to type set apart. */
export function Next({ next, label }: { readonly next: string; readonly label?: string }) {
  return (
    <p className="why-next">
      {label === undefined ? null : <strong>{label}</strong>}{' '}
      {adviceOf(next).map(({ kind, text }) =>
        kind === 'command' ? <Command key={text}>{text}</Command> : <span key={text}>{text}</span>,
      )}
    </p>
  );
}

function Reasons({ reasons }: { readonly reasons: readonly Reason[] }) {
  return (
    <ul className="why-reasons">
      {reasons.map((reason, index) => (
        // two reasons may be worded alike
        <li key={index}>
          <ReasonText reason={reason} />
        </li>
      ))}
    </ul>
  );
}

function ReasonText({ reason: { message, data } }: { readonly reason: Reason }) {
  return (
    <>
      {sentence(message)}
      {reasonLinks(data).map(({ href, label }) => (
        <Link key={href} href={href} className="why-link">
          {label}
        </Link>
      ))}
    </>
  );
}

function Chain({ why: { subject, chain } }: Pick<Props, 'why'>) {
  return (
    <section aria-labelledby="why-chain">
      <h2 id="why-chain">How it came about, latest first</h2>
      <ol className="moments">
        {chain.map((link, index) => {
          const href = link.id === subject.id ? undefined : linkOf(link, subject.job);
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
