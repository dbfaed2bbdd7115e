// Gradio gives `element`, `props`, `trigger` and `upload`.
const PICTURE = /\.(jpe?g|png|webp|bmp|tiff?)$/i;

element.addEventListener("change", async (event) => {
  const files = [...event.target.files].filter((file) => PICTURE.test(file.name));
  event.target.value = ""; // else the same folder could not be chosen again
  const say = (text) => (element.querySelector("span").textContent = text);
  const came = [];
  const failed = [];
  for (const file of files) {
    say(`Uploading ${came.length + failed.length + 1} of ${files.length} …`);
    try {
      came.push({ path: (await upload(file)).path, name: file.webkitRelativePath });
    } catch {
      failed.push(file.name);
    }
  }
  say(failed.length ? `Not uploaded, perhaps too large: ${failed.join(", ")}` : files.length ? "" : "No picture in it.");
  if (came.length) {
    props.value = JSON.stringify(came);
    trigger("upload");
  }
});
