// Images that are pasted or dropped into a composer. They are made small enough for one message.

/** Models scale larger pictures down themselves. */
const MAX_SIDE = 1568;
/** The server takes messages of 1 MB, and the text is in it too. */
const MAX_ENCODED = 900_000;
const MAX_IMAGES = 5;
/** From the best to the smallest. */
const ENCODINGS = [["image/png"], ["image/jpeg", 0.9], ["image/jpeg", 0.7], ["image/jpeg", 0.4]];

export class PastedImages {
  /** `refusal` says why no image can be taken, `say` shows what went wrong. */
  constructor(area, list, { refusal, say }) {
    Object.assign(this, { list, refusal, say, held: [] });
    area.addEventListener("paste", (event) => this.receive(event, event.clipboardData));
    area.addEventListener("drop", (event) => this.receive(event, event.dataTransfer));
    list.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      this.held.splice(Number(button.dataset.image), 1);
      this.show();
      area.focus();
    });
  }

  get isEmpty() { return this.held.length === 0; }

  /** The images, which are then no longer here. */
  take() {
    const taken = this.held;
    this.held = [];
    this.show();
    return taken;
  }

  putBack(images) {
    this.held = [...images, ...this.held].slice(0, MAX_IMAGES);
    this.show();
  }

  async receive(event, data) {
    const files = [...(data?.files ?? [])].filter((file) => file.type.startsWith("image/"));
    if (files.length === 0) return;
    event.preventDefault();
    const why = this.refusal();
    if (why) { this.say(why); return; }
    for (const file of files) {
      if (this.held.length >= MAX_IMAGES) { this.say(`a message takes ${MAX_IMAGES} images`); break; }
      try {
        const used = this.held.reduce((sum, image) => sum + image.data.length, 0);
        const image = await encode(file, MAX_ENCODED - used);
        if (image) this.held.push(image);
        else this.say("the images of this message are too large together");
      } catch {
        this.say("this image cannot be read");
      }
      this.show();
    }
  }

  show() {
    this.list.replaceChildren(...this.held.map((image, at) => {
      const item = document.createElement("li");
      const picture = document.createElement("img");
      picture.src = `data:${image.media_type};base64,${image.data}`;
      picture.alt = `Image ${at + 1} of the message`;
      const button = document.createElement("button");
      Object.assign(button, { type: "button", textContent: "✕", title: "Leave this image out" });
      button.dataset.image = at;
      item.append(picture, button);
      return item;
    }));
    this.list.hidden = this.isEmpty;
  }
}

/** An image in Base64, in the best form that has at most this many characters. */
async function encode(file, room) {
  const bitmap = await createImageBitmap(file);
  const scale = Math.min(1, MAX_SIDE / Math.max(bitmap.width, bitmap.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  for (const [type, quality] of ENCODINGS) {
    const blob = await new Promise((resolve) => { canvas.toBlob(resolve, type, quality); });
    if (blob && blob.size * 4 / 3 < room) return { media_type: blob.type, data: await base64(blob) };
  }
  return null;
}

async function base64(blob) {
  const reader = new FileReader();
  await new Promise((resolve, reject) => { reader.onload = resolve; reader.onerror = reject; reader.readAsDataURL(blob); });
  return reader.result.slice(reader.result.indexOf(",") + 1);
}
