/** Home: what is running, late, failing and next; recent activity; and health. */
import { Answer } from '../kit/answer.tsx';
import { Choice } from '../kit/choice.tsx';
import { useTitle } from '../kit/title.ts';
import { useUrlState } from '../kit/url-state.ts';
import { TenantsLine } from '../tenants/attention-line.tsx';
import { ActivityCharts } from './activity-charts.tsx';
import { Failing, Incidents, Late, Next } from './attention.tsx';
import { Health } from './health.tsx';
import './home.css';
import { NowFigures } from './now-figures.tsx';
import { useOverview } from './use-home.ts';

const spans = [
  { value: '60', label: '1 hour' },
  { value: '360', label: '6 hours' },
  { value: '1440', label: '1 day' },
  { value: '10080', label: '7 days' },
  { value: '43200', label: '30 days' },
] as const;

export function HomePage() {
  useTitle('Home');
  const overview = useOverview();
  const [asked, choose] = useUrlState('minutes', '60');
  const span = spans.find(({ value }) => value === asked) ?? spans[0];
  return (
    <>
      <header className="page-head">
        <h1>Home</h1>
      </header>
      <TenantsLine />
      <Answer of={overview} what="Reading how things stand">
        {(data) => (
          <div className="home">
            <NowFigures overview={data} />
            <section className="home-charts" aria-label="Activity">
              <Choice label="How far back" options={spans} value={span.value} change={choose} />
              <ActivityCharts minutes={Number(span.value)} />
            </section>
            <div className="home-lists">
              <Incidents incidents={data.incidents} />
              <Failing items={data.failing} />
              <Late items={data.late} />
              <Next items={data.next} />
              <Health health={data.health} />
            </div>
          </div>
        )}
      </Answer>
    </>
  );
}
