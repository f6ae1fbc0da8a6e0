/** All endpoints of the event bus, except those of topics. */
import { busActivityEndpoints } from './activity/endpoints.ts';
import { controlEndpoints } from './controls/endpoints.ts';
import { deliveryEndpoints } from './deliveries/endpoints.ts';
import { eventEndpoints } from './events/endpoints.ts';
import { deliveryExplainEndpoints } from './explain/endpoints.ts';
import { pullEndpoints } from './pull/endpoints.ts';
import { replayEndpoints } from './replays/endpoints.ts';
import { subscriberEndpoints } from './subscribers/endpoints.ts';
import { transferEndpoints } from './transfer/endpoints.ts';

export const busSubscriberEndpoints = {
  ...subscriberEndpoints,
  ...busActivityEndpoints,
  ...controlEndpoints,
  ...replayEndpoints,
  ...deliveryEndpoints,
  ...pullEndpoints,
  ...eventEndpoints,
  ...transferEndpoints,
  ...deliveryExplainEndpoints,
};
