/** All handlers of the event bus, except those of topics. */
import { busActivityHandlers } from './activity/handlers.ts';
import { controlHandlers } from './controls/handlers.ts';
import { deliveryHandlers } from './deliveries/handlers.ts';
import { busEventHandlers } from './events/handlers.ts';
import { deliveryExplainHandlers } from './explain/handlers.ts';
import { pullHandlers } from './pull/handlers.ts';
import { replayHandlers } from './replays/handlers.ts';
import { subscriberHandlers } from './subscribers/handlers.ts';
import { transferHandlers } from './transfer/handlers.ts';

export const busSubscriberHandlers = {
  ...busActivityHandlers,
  ...subscriberHandlers,
  ...controlHandlers,
  ...replayHandlers,
  ...deliveryHandlers,
  ...pullHandlers,
  ...busEventHandlers,
  ...transferHandlers,
  ...deliveryExplainHandlers,
};
