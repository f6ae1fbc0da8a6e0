/** Prints one subscriber, and the result of a test delivery. */
import { type Output, showTime } from '../../print/output.ts';
import { oneLine } from '../../print/width.ts';
import { Ended, exitCodes } from '../../session/exit.ts';
import type { Session } from '../../session/session.ts';
import { subscriberStyle } from './subscribe.ts';
import type { SubscriberCalls, SubscriberDetail } from './subscriber-calls.ts';

export function showDetail(out: Output, detail: SubscriberDetail): void {
  const { events, reason, state } = detail;
  out.facts([
    ['subscriber', detail.subscriber],
    ['id', detail.id],
    ['state', reason === null ? state : `${state} (${reason})`],
    ['receives', detail.kind === 'pull' ? 'by pull' : `at ${detail.callback ?? '-'}`],
    ['topics', detail.topics.join(', ') || '-'],
    ['filter', detail.filter === null ? 'none' : JSON.stringify(detail.filter)],
    ['batches', `up to ${detail.max_events} events or ${detail.max_bytes} bytes, window ${detail.timeout} ms`],
    ['order', detail.strands === 1 ? 'strict' : `by key, ${detail.strands} strands`],
    ['signatures', detail.secrets === 0 ? 'none' : `${detail.secrets} valid`],
    ['health', String(detail.health)],
    ['queued', events.queued === 0 ? 'nothing' : `${events.queued}, the oldest of ${showTime(events.oldest)}`],
    ['sent', String(events.sent)],
    ['dead letters', String(detail.dead_letters)],
    ...(detail.dropped === null
      ? []
      : [['dropped', `${detail.dropped.events} events, ${showTime(detail.dropped.at)}`] as const]),
    ['last attempt', showTime(detail.last_attempted_at)],
    ...(detail.failing_since === null ? [] : [['failing since', showTime(detail.failing_since)] as const]),
    ['created', showTime(detail.created_at)],
  ]);
  if (events.queued === 0 && detail.readers.length === 1) return;
  out.line('');
  out.table(
    [
      { title: 'STRAND', align: 'right' },
      { title: 'POSITION', align: 'right' },
      { title: 'QUEUED', align: 'right' },
      { title: 'ATTEMPTS', align: 'right' },
      { title: 'ERRAND' },
      { title: 'NEXT ATTEMPT' },
    ],
    detail.readers.map((reader) => [
      reader.strand,
      reader.position,
      reader.queued,
      reader.attempts,
      reader.errand,
      showTime(reader.next_attempt_at),
    ]),
  );
  if (state !== 'active' || events.queued > 0)
    out.line(`\n${out.paint(subscriberStyle(state), 'why?')} millrace why delivery ${detail.subscriber}`);
}

/** Ends with 1 unless the receiver accepted the test. */
export function showTest(session: Session, result: Awaited<ReturnType<SubscriberCalls['test']>>): void {
  const { delivery } = result;
  session.out.answer(result, () => {
    if (delivery === null) return session.out.note('no courier has sent the test yet; is one running? millrace status');
    const answer = delivery.status === null ? (delivery.code ?? 'failed') : `HTTP ${delivery.status}`;
    session.out.line(`${answer} after ${delivery.ms} ms${delivery.excerpt ? `: ${oneLine(delivery.excerpt)}` : ''}`);
  });
  const status = delivery?.status ?? 0;
  if (status < 200 || status > 299) throw new Ended(exitCodes.failed);
}
