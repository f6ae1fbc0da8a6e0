/**
 * The server's explanation of why something ran, fired or waits: a summary, advice, the reasons, and the chain of causes.
 * In a panel it is brief: without chain and headings.
 */
import { Link } from 'wouter';
import { Command } from '../kit/command.tsx';
import '../kit/moments.css';
import { Age } from '../time/times.tsx';
import { adviceOf } from './advice.ts';
import './explanation.css';
import { sentence } from './sentence.ts';
import { linkOf, reasonLinks, type Why } from './why-links.ts';

/** Tokens and triggers are explained in the same form. */
type Reason = Why['reasons'][number];

interface Props {
  readonly why: Why;
  /** Whether it has not started: then the obstacle matters most. */
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

interface BriefProps {
  readonly why: {
    readonly summary: string;
    readonly reasons: readonly Pick<Reason, 'message' | 'data'>[];
    readonly next: string | null;
  };
}

/** For a place that already names the subject: the first reason is the shortest summary. */
export function BriefExplanation({ why: { summary, reasons, next } }: BriefProps) {
  const [first, ...rest] = reasons;
  return (
    <div className="why" data-brief="">
      <p className="why-summary">{first === undefined ? sentence(summary) : <ReasonText reason={first} />}</p>
      {rest.length === 0 ? null : <Reasons reasons={rest} />}
      {next === null ? null : <Next next={next} />}
    </div>
  );
}

/** The page already names the run and its instant; the first reason is the obstacle. */
function whyItWaits({ reasons: [first], summary }: Why): string {
  return first === undefined ? sentence(summary) : `It has not started: ${sentence(first.message, false)}`;
}

/** The advice, with commands set apart. */
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

function Reasons({ reasons }: { readonly reasons: readonly Pick<Reason, 'message' | 'data'>[] }) {
  return (
    <ul className="why-reasons">
      {reasons.map((reason, index) => (
        // two reasons may have the same text
        <li key={index}>
          <ReasonText reason={reason} />
        </li>
      ))}
    </ul>
  );
}

function ReasonText({ reason: { message, data } }: { readonly reason: Pick<Reason, 'message' | 'data'> }) {
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
