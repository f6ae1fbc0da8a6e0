/** The couriers and conductors of the installation, and what an operator must know about them. */
import { conductorWarnings, readConductorStanding } from '../../control/conductor-queries.ts';
import { courierWarnings, readCourierStanding } from '../../control/courier-queries.ts';
import type { Db } from '../../kernel/sql.ts';

export async function readStandings(control: Db) {
  const [bus, flows] = await Promise.all([readCourierStanding(control), readConductorStanding(control)]);
  return {
    couriers: bus.couriers,
    conductors: flows.conductors,
    warnings: [...courierWarnings(bus), ...conductorWarnings(flows)],
  };
}

export async function readWarnings(control: Db): Promise<readonly string[]> {
  return (await readStandings(control)).warnings;
}
