// What a visitor takes along, made in the browser from what the service answered.
// `lines` are those of the answer, with the words in them that are to be kept.

function save(text, type, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

// Line by line, an empty line between blocks.
function plainText(answer, lines) {
  const texts = lines.map(({ words, block }, place) => {
    const apart = place && lines[place - 1].block !== block ? "\n" : "";
    return apart + words.map((number) => answer.words[number].text).join(" ");
  });
  return texts.join("\n");
}

const MEANINGS = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const harmless = (text) => text.replace(/[&<>"']/g, (character) => MEANINGS[character]);

// The upright rectangle around some words: left, top, right, bottom in whole pixels.
function around(words) {
  const points = words.flatMap((word) => word.polygon);
  const low = [0, 1].map((axis) => Math.max(0, Math.floor(Math.min(...points.map((point) => point[axis])))));
  return [...low, ...[0, 1].map((axis) => Math.ceil(Math.max(...points.map((point) => point[axis]))))].join(" ");
}

function hocrWord(word, number) {
  const corners = word.polygon.flat().map(Math.round).join(" ");
  const title = `bbox ${around([word])}; poly ${corners}; x_wconf ${Math.floor(100 * word.confidence)}`;
  return `<span class="ocrx_word" id="word_1_${number}" title="${title}">${harmless(word.text)}</span>`;
}

function hocrLine(line, number, words) {
  const own = line.words.map((each) => words[each]);
  const turn = (360 - Math.round(own[0].angle)) % 360; // hOCR counts against the clock, the service with it
  const text = line.words.map((each) => hocrWord(words[each], each + 1)).join(" ");
  return `<span class="ocr_line" id="line_1_${number}" title="bbox ${around(own)}; textangle ${turn}">${text}</span>`;
}

// Text with the place of each word, in the form hOCR 1.2, of which other tools make searchable PDFs.
function hocr(answer, lines, name) {
  const blocks = [...new Set(lines.map((line) => line.block))].map((block) => {
    const own = lines.filter((line) => line.block === block);
    const place = around(own.flatMap((line) => line.words).map((each) => answer.words[each]));
    const text = own.map((line) => hocrLine(line, lines.indexOf(line) + 1, answer.words)).join("<br/>\n");
    return `<div class="ocr_carea" id="block_1_${block + 1}" title="bbox ${place}"><p class="ocr_par">
${text}
</p></div>`;
  });
  const { width, height } = answer.image, title = harmless(name);
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en" lang="en"><head><meta charset="utf-8"/>
<title>${title}</title><meta name="ocr-system" content="Readleaf"/>
<meta name="ocr-capabilities" content="ocr_page ocr_carea ocr_par ocr_line ocrx_word"/></head><body>
<div class="ocr_page" id="page_1" title="image &quot;${title}&quot;; bbox 0 0 ${width} ${height}">
${blocks.join("\n")}
</div></body></html>
`;
}
