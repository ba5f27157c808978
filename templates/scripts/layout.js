// Where the panels of a figure stand in a width, in pixels of the page.
// A figure that is narrower is that of a small screen.
const NARROW = 760;
// A panel that is narrower has small letters, and a figure has no room for a tip beside the pointer.
const SMALL = 480;
const GAP = 16;
// The title of a panel.
const TITLE = 22;
// The title of the x axis of a small panel.
const NAME = 15;
// The share of a large panel and that of the others beside it.
const LARGE_SHARE = 1.9;

// As few rows as five columns allow, each with about as many panels.
function columnsOf(count, isNarrow) {
  return isNarrow ? Math.min(count, 2) : Math.ceil(count / Math.ceil(count / 5));
}

function shareOf(wide, columns) {
  return (wide - GAP * (columns - 1)) / columns;
}

// Columns, and of each panel its width, its height and whether it has large letters; with `hero`
// the others stand beside or below a large one.
function arrange(count, large, wide) {
  const isNarrow = wide < NARROW;
  const high = clamp(innerHeight - 272, 420, 560);
  if (count === 1)
    return { columns: 1, sizes: [isNarrow ? [wide, 330, true] : [wide, high, true]] };
  if (large !== null && !isNarrow && count <= 4) return arrangeBeside(count, large, wide, high);
  if (large !== null) return arrangeBelow(count, large, wide, high);
  if (count === 2) {
    const size = [shareOf(wide, 2), clamp(innerHeight - 288, 320, 460), true];
    return {
      columns: isNarrow ? 1 : 2,
      sizes: Array(2).fill(isNarrow ? [wide, 280, false] : size),
    };
  }
  const columns = isNarrow && count <= 4 ? 1 : columnsOf(count, isNarrow);
  const rows = Math.ceil(count / columns);
  const heights = [320, 220, 180];
  const each = isNarrow ? narrowHeight(columns) : (heights[rows - 1] ?? 150);
  return { columns, sizes: Array(count).fill([shareOf(wide, columns), each, false]) };
}

function narrowHeight(columns) {
  return columns === 1 ? 190 : 130;
}

// At most three panels in a column beside the large one.
function arrangeBeside(count, large, wide, high) {
  const others = count - 1;
  const left = ((wide - GAP) * LARGE_SHARE) / (LARGE_SHARE + 1);
  const each = (high - (others - 1) * 6 - others * TITLE + TITLE) / others;
  const small = [wide - GAP - left, each, false];
  const sizes = Array.from({ length: count }, (_, i) => (i === large ? [left, high, true] : small));
  return { columns: "minmax(0, 1.9fr) minmax(0, 1fr)", sizes, hero: "beside" };
}

// The others in rows below the large one.
function arrangeBelow(count, large, wide, high) {
  const isNarrow = wide < NARROW;
  const others = count - 1;
  const columns = isNarrow && others <= 3 ? 1 : columnsOf(others, isNarrow);
  const wideHeight = others <= 5 ? 220 : 180;
  const each = isNarrow ? narrowHeight(columns) : wideHeight;
  const small = [shareOf(wide, columns), each, false];
  const whole = [wide, isNarrow ? 330 : high - 60, true];
  const sizes = Array.from({ length: count }, (_, i) => (i === large ? whole : small));
  return { columns, sizes, hero: "below" };
}
