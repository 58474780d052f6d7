package server

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // Registers the codec for every other message.
	"google.golang.org/grpc/mem"
)

// codec reads and writes the two messages of Envoy's protocol itself and leaves
// those of health checks and reflection to gRPC's own.
type codec struct {
	encoding.CodecV2
}

func newCodec() codec { return codec{CodecV2: encoding.GetCodecV2("proto")} }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	a, ok := v.(*answer)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	return mem.BufferSlice{mem.SliceBuffer(a.marshal(make([]byte, 0, a.size())))}, nil
}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	r, ok := v.(*checkRequest)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	if err := r.unmarshal(whole.ReadOnlyData()); err != nil {
		return fmt.Errorf("read a CheckRequest: %w", err)
	}
	return nil
}
