/** One subscriber: its state with the reason, its lag, its actions, and the view that the address names (`?view=`). */
import type { ComponentType } from 'react';
import { Link } from 'wouter';
import { BriefExplanation } from '../explain/explanation.tsx';
import { Answer } from '../kit/answer.tsx';
import { Fact, Facts } from '../kit/facts.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { NotFound } from '../kit/not-found.tsx';
import { useTitle } from '../kit/title.ts';
import { useUrlState } from '../kit/url-state.ts';
import { Age } from '../time/times.tsx';
import './bus.css';
import { BusCharts } from './bus-charts.tsx';
import { ChartSpan, useChartSpan } from './chart-span.tsx';
import { DeadLetters } from './dead-letters.tsx';
import { DeliveriesView } from './deliveries-view.tsx';
import { LagCharts } from './lag-charts.tsx';
import { ReplaysView } from './replays-view.tsx';
import { StrandsView } from './strands-view.tsx';
import { SubscriberActions } from './subscriber-actions.tsx';
import { SettingsView } from './subscriber-settings.tsx';
import { Health, SubscriberState } from './subscriber-state.tsx';
import { type SubscriberDetail, useDeliveryWhy, useSubscriber } from './use-bus.ts';

interface View {
  readonly name: string;
  readonly label: string;
  readonly Body: ComponentType<{ readonly subscriber: SubscriberDetail }>;
}

const views: readonly View[] = [
  { name: 'deliveries', label: 'Deliveries', Body: DeliveriesView },
  { name: 'queue', label: 'Queue', Body: StrandsView },
  {
    name: 'dead-letters',
    label: 'Dead letters',
    Body: ({ subscriber }) => <DeadLetters subscriber={subscriber.subscriber} />,
  },
  { name: 'replays', label: 'Replays', Body: ReplaysView },
  { name: 'rates', label: 'Rates and lag', Body: ChartsView },
  { name: 'settings', label: 'Settings', Body: SettingsView },
];

export default function SubscriberPage({ id }: { readonly id: string }) {
  useTitle(id);
  return (
    <>
      <nav className="crumbs" aria-label="Where this is">
        <Link href="/topics">Bus</Link>
        <Link href="/subscribers">Subscribers</Link>
      </nav>
      <Answer of={useSubscriber(id)} what="Reading the subscriber">
        {(subscriber) => (
          <>
            <header className="page-head">
              <h1>{subscriber.subscriber}</h1>
              <span role="status">
                <SubscriberState subscriber={subscriber} />
              </span>
              <SubscriberActions subscriber={subscriber} />
            </header>
            <Why id={subscriber.id} />
            <SubscriberFacts subscriber={subscriber} />
            <SubscriberView subscriber={subscriber} />
          </>
        )}
      </Answer>
    </>
  );
}

function ChartsView({ subscriber: { id } }: { readonly subscriber: SubscriberDetail }) {
  const minutes = useChartSpan();
  return (
    <section className="bus-part" aria-label="Rates and lag">
      <ChartSpan />
      <BusCharts minutes={minutes} subscriber={id} />
      <LagCharts minutes={minutes} subscriber={id} />
    </section>
  );
}

function Why({ id }: { readonly id: string }) {
  const { data: why, error } = useDeliveryWhy(id);
  if (why === undefined) return <InlineFailure error={error} />;
  return (
    <section className="bus-why" aria-label="Why">
      <BriefExplanation why={why} />
    </section>
  );
}

function SubscriberFacts({ subscriber }: { readonly subscriber: SubscriberDetail }) {
  const { events, health, callback, topics, dead_letters: deadLetters } = subscriber;
  return (
    <Facts>
      <Fact term="Waiting">{events.queued.toLocaleString('en')}</Fact>
      <Fact term="Oldest">{events.oldest === null ? '–' : <Age at={events.oldest} />}</Fact>
      <Fact term="Delivered">{events.sent.toLocaleString('en')}</Fact>
      <Fact term="Dead letters">{deadLetters.toLocaleString('en')}</Fact>
      {subscriber.dropped !== null && (
        <Fact term="Dropped">
          {subscriber.dropped.events.toLocaleString('en')} events, <Age at={subscriber.dropped.at} />
        </Fact>
      )}
      <Fact term="Health">
        <Health points={health} /> {health}
      </Fact>
      <Fact term="Last attempt">
        {subscriber.last_attempted_at === null ? 'none' : <Age at={subscriber.last_attempted_at} />}
      </Fact>
      <Fact term="Topics">{topics.length === 0 ? 'none' : topics.join(', ')}</Fact>
      <Fact term="Receiver">{callback ?? 'pulls its batches'}</Fact>
    </Facts>
  );
}

function SubscriberView({ subscriber }: { readonly subscriber: SubscriberDetail }) {
  const [view] = useUrlState('view', 'deliveries');
  const shown = views.find(({ name }) => name === view);
  if (shown === undefined) return <NotFound />;
  const base = `/subscribers/${encodeURIComponent(subscriber.subscriber)}`;
  return (
    <>
      <nav className="tabs" aria-label="Views of this subscriber">
        {views.map(({ name, label }) => (
          <Link key={name} href={`${base}?view=${name}`} aria-current={name === view ? 'page' : undefined}>
            {label}
          </Link>
        ))}
      </nav>
      <shown.Body subscriber={subscriber} />
    </>
  );
}
