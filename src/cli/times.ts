/** Points in time as people read them, in local time. */

const two = (n: number): string => String(n).padStart(2, "0");

const dayOf = (at: Date): string => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;

/** `14:02` for today, else the date. */
export const clock = (at: Date, now: Date): string =>
  dayOf(at) === dayOf(now) ? `${two(at.getHours())}:${two(at.getMinutes())}` : dayOf(at);

/** A time to come, to the minute: `14:02` for today, else with its date. */
export const moment = (at: Date, now: Date): string => {
  const time = `${two(at.getHours())}:${two(at.getMinutes())}`;
  return dayOf(at) === dayOf(now) ? time : `${dayOf(at)} ${time}`;
};

/** `just now`, `12 s ago`, `4 min ago`, `3 h ago`, `2 d ago`, and the date after a month. */
export function ago(at: Date, now: Date): string {
  const seconds = Math.floor((now.getTime() - at.getTime()) / 1000);
  // A clock that was set back is not worth a negative age.
  if (seconds < 2) return "just now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  if (seconds < 30 * 86_400) return `${Math.floor(seconds / 86_400)} d ago`;
  return dayOf(at);
}
