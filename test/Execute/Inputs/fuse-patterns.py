"""Writes test/Execute/nn-fuse-patterns.mlir: exporters' patterns with PyTorch's values (needs torch; run in the repository root)."""

import torch, math, numpy as np
torch.manual_seed(0)
def num(v):
    m,_,e=repr(float(v)).partition('e'); 
    if m in('inf','-inf'): return '0xFF800000' if m[0]=='-' else '0x7F800000'
    return (m if '.' in m else m+'.0')+('e'+e if e else '')
def d(t):
    def f(x): return '['+', '.join(f(y) for y in x)+']' if x.dim() else num(x)
    return f"dense<{f(t)}> : {ty(t)}"
def ty(t): return 'tensor<'+''.join(f'{s}x' for s in t.shape)+'f32>'
r=lambda *s:(torch.randn(*s)*100).round()/100
out=[]
x=r(5); 
import torch.nn.functional as F
def fn(name,args,res,body,check):
    a=',\n    '.join(f"%{n}: {ty(v)} {{test.value = {d(v)}}}" for n,v in args.items())
    out.append(f"// CHECK-LABEL: @{name}\n{check}\nfunc.func @{name}({a})\n    -> ({ty(res)} {{test.value = {d(res)}}}) {{\n{body}\n}}\n")
fn('gelu_erf',{'x':x},F.gelu(x),'''  %half = nn.constant dense<0.5> : tensor<5xf32>
  %one = nn.constant dense<1.0> : tensor<5xf32>
  %root = nn.constant dense<1.41421354> : tensor<5xf32>
  %a = nn.div %x, %root : tensor<5xf32>
  %b = nn.erf %a : tensor<5xf32>
  %c = nn.add %b, %one : tensor<5xf32>
  %e = nn.mul %x, %c : tensor<5xf32>
  %y = nn.mul %e, %half : tensor<5xf32>
  return %y : tensor<5xf32>''','// CHECK: nn.gelu %arg0\n// CHECK-NEXT: return')
fn('gelu_tanh',{'x':x},F.gelu(x,approximate='tanh'),'''  %half = nn.constant dense<0.5> : tensor<5xf32>
  %one = nn.constant dense<1.0> : tensor<5xf32>
  %three = nn.constant dense<3.0> : tensor<5xf32>
  %c = nn.constant dense<4.471500e-02> : tensor<5xf32>
  %root = nn.constant dense<0.797884583> : tensor<5xf32>
  %h = nn.mul %x, %half : tensor<5xf32>
  %p = nn.pow %x, %three : tensor<5xf32>
  %q = nn.mul %p, %c : tensor<5xf32>
  %s = nn.add %x, %q : tensor<5xf32>
  %t = nn.mul %s, %root : tensor<5xf32>
  %u = nn.tanh %t : tensor<5xf32>
  %v = nn.add %one, %u : tensor<5xf32>
  %y = nn.mul %h, %v : tensor<5xf32>
  return %y : tensor<5xf32>''','// CHECK: nn.gelu_tanh %arg0\n// CHECK-NEXT: return')
fn('silu',{'x':x},F.silu(x),'''  %s = nn.sigmoid %x : tensor<5xf32>
  %y = nn.mul %s, %x : tensor<5xf32>
  return %y : tensor<5xf32>''','// CHECK: nn.silu %arg0\n// CHECK-NEXT: return')
x=r(2,3,4); w=r(4); b=r(4)
mean='''  %fourth = nn.constant dense<0.25> : tensor<2x3x1xf32>
  %eps = nn.constant dense<0.01> : tensor<2x3x1xf32>
'''
rms=x/torch.sqrt((x*x).mean(-1,keepdim=True)+0.01)*w
fn('rms_norm',{'x':x,'w':w},rms,mean+'''  %sq = nn.mul %x, %x : tensor<2x3x4xf32>
  %sum = nn.reduce_sum %sq dims = [2] : tensor<2x3x4xf32> -> tensor<2x3xf32>
  %kept = nn.reshape %sum : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %ms = nn.mul %kept, %fourth : tensor<2x3x1xf32>
  %me = nn.add %ms, %eps : tensor<2x3x1xf32>
  %root = nn.sqrt %me : tensor<2x3x1xf32>
  %r = nn.reciprocal %root : tensor<2x3x1xf32>
  %rs = nn.broadcast %r dims = [0, 1, 2] : tensor<2x3x1xf32> -> tensor<2x3x4xf32>
  %n = nn.mul %x, %rs : tensor<2x3x4xf32>
  %ws = nn.broadcast %w dims = [2] : tensor<4xf32> -> tensor<2x3x4xf32>
  %y = nn.mul %ws, %n : tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>''','// CHECK: %[[Y:.*]], %{{.*}} = nn.rms_norm %arg0, %arg1 axis = 2 epsilon = {{0.0099999.*|1.0+e-02}} :\n// CHECK-NEXT: return %[[Y]]')
fn('layer_norm',{'x':x,'w':w,'b':b},F.layer_norm(x,(4,),w,b,0.01),mean+'''  %sum = nn.reduce_sum %x dims = [2] : tensor<2x3x4xf32> -> tensor<2x3xf32>
  %kept = nn.reshape %sum : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %mean = nn.mul %kept, %fourth : tensor<2x3x1xf32>
  %means = nn.broadcast %mean dims = [0, 1, 2] : tensor<2x3x1xf32> -> tensor<2x3x4xf32>
  %d = nn.sub %x, %means : tensor<2x3x4xf32>
  %sq = nn.mul %d, %d : tensor<2x3x4xf32>
  %sum2 = nn.reduce_sum %sq dims = [2] : tensor<2x3x4xf32> -> tensor<2x3xf32>
  %kept2 = nn.reshape %sum2 : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %var = nn.mul %kept2, %fourth : tensor<2x3x1xf32>
  %ve = nn.add %var, %eps : tensor<2x3x1xf32>
  %root = nn.sqrt %ve : tensor<2x3x1xf32>
  %rs = nn.broadcast %root dims = [0, 1, 2] : tensor<2x3x1xf32> -> tensor<2x3x4xf32>
  %n = nn.div %d, %rs : tensor<2x3x4xf32>
  %ws = nn.broadcast %w dims = [2] : tensor<4xf32> -> tensor<2x3x4xf32>
  %m = nn.mul %n, %ws : tensor<2x3x4xf32>
  %bs = nn.broadcast %b dims = [2] : tensor<4xf32> -> tensor<2x3x4xf32>
  %y = nn.add %m, %bs : tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>''','// CHECK: %[[Y:.*]], %{{.*}}, %{{.*}} = nn.layer_norm %arg0, %arg1, %arg2 axis = 2 epsilon =\n// CHECK-NEXT: return %[[Y]]')
q=r(1,2,3,4);k=r(1,2,3,4);v=r(1,2,3,2)
causal=torch.tril(torch.ones(3,3)).bool()
at=lambda m:F.scaled_dot_product_attention(q,k,v,attn_mask=m)
fn('attention_causal',{'q':q,'k':k,'v':v},at(causal),'''  %low = nn.constant dense<0xFF800000> : tensor<1x2x3x3xf32>
  %scale = nn.constant dense<0.5> : tensor<1x2x3x3xf32>
  %visible = nn.constant dense<[[true, false, false], [true, true, false], [true, true, true]]> : tensor<3x3xi1>
  %kt = nn.transpose %k [0, 1, 3, 2] : tensor<1x2x3x4xf32> -> tensor<1x2x4x3xf32>
  %s = nn.dot %q, %kt : (tensor<1x2x3x4xf32>, tensor<1x2x4x3xf32>) -> tensor<1x2x3x3xf32>
  %scaled = nn.mul %s, %scale : tensor<1x2x3x3xf32>
  %all = nn.broadcast %visible dims = [2, 3] : tensor<3x3xi1> -> tensor<1x2x3x3xi1>
  %seen = nn.select %all, %scaled, %low : tensor<1x2x3x3xi1>, tensor<1x2x3x3xf32>
  %p = nn.softmax %seen dim = 3 : tensor<1x2x3x3xf32>
  %y = nn.dot %p, %v : (tensor<1x2x3x3xf32>, tensor<1x2x3x2xf32>) -> tensor<1x2x3x2xf32>
  return %y : tensor<1x2x3x2xf32>''','// CHECK: %[[O:.*]], %{{.*}} = nn.attention %arg0, %arg1, %arg2 scale = 5.000000e-01 causal :\n// CHECK-NEXT: return %[[O]]')
m=r(1,1,3,3)
fn('attention_mask',{'q':q,'k':k,'v':v,'m':m},at(m.expand(1,2,3,3)),'''  %root = nn.constant dense<0.707106769> : tensor<1x2x3x4xf32>
  %qs = nn.mul %q, %root : tensor<1x2x3x4xf32>
  %ks = nn.mul %k, %root : tensor<1x2x3x4xf32>
  %s = nn.dot %qs, %ks {transpose_b} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x3xf32>
  %ms = nn.broadcast %m dims = [0, 1, 2, 3] : tensor<1x1x3x3xf32> -> tensor<1x2x3x3xf32>
  %seen = nn.add %s, %ms : tensor<1x2x3x3xf32>
  %p = nn.softmax %seen dim = 3 : tensor<1x2x3x3xf32>
  %y = nn.dot %p, %v : (tensor<1x2x3x3xf32>, tensor<1x2x3x2xf32>) -> tensor<1x2x3x2xf32>
  return %y : tensor<1x2x3x2xf32>''','// CHECK: %[[O:.*]], %{{.*}} = nn.attention %arg0, %arg1, %arg2 mask %arg3 scale = {{0.49999[0-9]*|5.0+e-01}} :\n// CHECK-NEXT: return %[[O]]')
q3,k3,v3=q[0],k[0],v[0]
fn('attention_rank3',{'q':q3,'k':k3,'v':v3},F.scaled_dot_product_attention(q3,k3,v3),'''  %root = nn.constant dense<2.0> : tensor<2x3x3xf32>
  %s = nn.dot %q, %k {transpose_b} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
  %d = nn.div %s, %root : tensor<2x3x3xf32>
  %p = nn.softmax %d dim = 2 : tensor<2x3x3xf32>
  %y = nn.dot %p, %v : (tensor<2x3x3xf32>, tensor<2x3x2xf32>) -> tensor<2x3x2xf32>
  return %y : tensor<2x3x2xf32>''','// CHECK: nn.attention %{{.*}} scale = 5.000000e-01 : (tensor<2x1x3x4xf32>')
q4,k4,v4=r(1,4,3,2),r(2,2,3,2)[:1],r(2,2,3,2)[:1]
q4,k4,v4=r(2,4,3,2),r(2,2,3,2),r(2,2,3,2)
fn('attention_shared_heads',{'q':q4,'k':k4,'v':v4},F.scaled_dot_product_attention(q4,k4.repeat_interleave(2,1),v4.repeat_interleave(2,1),scale=1.0),'''  %kb = nn.broadcast %k dims = [0, 1, 3, 4] : tensor<2x2x3x2xf32> -> tensor<2x2x2x3x2xf32>
  %kr = nn.reshape %kb : tensor<2x2x2x3x2xf32> -> tensor<2x4x3x2xf32>
  %vb = nn.broadcast %v dims = [0, 1, 3, 4] : tensor<2x2x3x2xf32> -> tensor<2x2x2x3x2xf32>
  %vr = nn.reshape %vb : tensor<2x2x2x3x2xf32> -> tensor<2x4x3x2xf32>
  %s = nn.dot %q, %kr {transpose_b} : (tensor<2x4x3x2xf32>, tensor<2x4x3x2xf32>) -> tensor<2x4x3x3xf32>
  %p = nn.softmax %s dim = 3 : tensor<2x4x3x3xf32>
  %y = nn.dot %p, %vr : (tensor<2x4x3x3xf32>, tensor<2x4x3x2xf32>) -> tensor<2x4x3x2xf32>
  return %y : tensor<2x4x3x2xf32>''','// CHECK: nn.attention %arg0, %arg1, %arg2 scale = 1.000000e+00 :')
# PyTorch's guard: where a row sees nothing, the softmax is NaN and 0 stands for it.
hidden=r(1,1,3,3).masked_fill(torch.tensor([[False,True,False],[True,True,True],[False,False,False]]),-math.inf)
p=torch.softmax(q@k.transpose(-1,-2)*0.5+hidden,-1)
fn('attention_guarded',{'q':q,'k':k,'v':v,'m':hidden},torch.where(p.isnan(),0.0,p)@v,'''  %zero = nn.constant dense<0.0> : tensor<1x2x3x3xf32>
  %scale = nn.constant dense<0.5> : tensor<1x2x3x3xf32>
  %d = nn.dot %q, %k {transpose_b} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x3xf32>
  %s = nn.mul %d, %scale : tensor<1x2x3x3xf32>
  %ms = nn.broadcast %m dims = [0, 1, 2, 3] : tensor<1x1x3x3xf32> -> tensor<1x2x3x3xf32>
  %seen = nn.add %s, %ms : tensor<1x2x3x3xf32>
  %p = nn.softmax %seen dim = 3 : tensor<1x2x3x3xf32>
  %nan = nn.is_nan %p : tensor<1x2x3x3xf32> -> tensor<1x2x3x3xi1>
  %g = nn.select %nan, %zero, %p : tensor<1x2x3x3xi1>, tensor<1x2x3x3xf32>
  %y = nn.dot %g, %v : (tensor<1x2x3x3xf32>, tensor<1x2x3x2xf32>) -> tensor<1x2x3x2xf32>
  return %y : tensor<1x2x3x2xf32>''','''// CHECK: %[[LESS:.*]] = nn.reduce_max %arg3 dims = [3]
// CHECK: %[[NONE:.*]] = nn.compare eq %[[LESS]]
// CHECK: %[[O:.*]], %{{.*}} = nn.attention %arg0, %arg1, %arg2 mask %{{.*}} scale = 5.000000e-01 :
// CHECK: %[[Y:.*]] = nn.select %{{.*}}, %{{.*}}, %[[O]]
// CHECK-NEXT: return %[[Y]]''')
# Numbers that replace scores, in the order that masked_fill is exported in. In the last row nothing is seen: all columns alike.
pad=torch.tensor([[[[0.,1.,0.],[1.,0.,0.],[1.,1.,1.]]]])
s=q@k.transpose(-1,-2)
fn('attention_hidden',{'q':q,'k':k,'v':v,'m':pad},s.masked_fill(pad!=0,-1e9).softmax(-1)@v,'''  %low = nn.constant dense<-1.0e9> : tensor<1x2x3x3xf32>
  %zero = nn.constant dense<0.0> : tensor<1x1x3x3xf32>
  %hidden = nn.compare ne %m, %zero : tensor<1x1x3x3xf32> -> tensor<1x1x3x3xi1>
  %s = nn.dot %q, %k {transpose_b} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x3xf32>
  %all = nn.broadcast %hidden dims = [0, 1, 2, 3] : tensor<1x1x3x3xi1> -> tensor<1x2x3x3xi1>
  %seen = nn.select %all, %low, %s : tensor<1x2x3x3xi1>, tensor<1x2x3x3xf32>
  %p = nn.softmax %seen dim = 3 : tensor<1x2x3x3xf32>
  %y = nn.dot %p, %v : (tensor<1x2x3x3xf32>, tensor<1x2x3x2xf32>) -> tensor<1x2x3x2xf32>
  return %y : tensor<1x2x3x2xf32>''','''// CHECK: %[[LESS:.*]] = nn.reduce_max %{{.*}} dims = [3] : tensor<1x1x3x3xf32>
// CHECK: %[[NONE:.*]] = nn.compare eq %[[LESS]]
// CHECK: %[[Q:.*]] = nn.select %{{.*}}, %{{.*}}, %arg0
// CHECK: %[[O:.*]], %{{.*}} = nn.attention %[[Q]], %arg1, %arg2 mask %{{.*}} scale = 1.000000e+00 :
// CHECK-NEXT: return %[[O]]''')
fn('attention_future',{'q':q,'k':k,'v':v},s.masked_fill(~causal,-math.inf).softmax(-1)@v,'''  %low = nn.constant dense<0xFF800000> : tensor<1x2x3x3xf32>
  %visible = nn.constant dense<[[true, false, false], [true, true, false], [true, true, true]]> : tensor<3x3xi1>
  %future = nn.not %visible : tensor<3x3xi1>
  %s = nn.dot %q, %k {transpose_b} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x3xf32>
  %all = nn.broadcast %future dims = [2, 3] : tensor<3x3xi1> -> tensor<1x2x3x3xi1>
  %seen = nn.select %all, %low, %s : tensor<1x2x3x3xi1>, tensor<1x2x3x3xf32>
  %p = nn.softmax %seen dim = 3 : tensor<1x2x3x3xf32>
  %y = nn.dot %p, %v : (tensor<1x2x3x3xf32>, tensor<1x2x3x2xf32>) -> tensor<1x2x3x2xf32>
  return %y : tensor<1x2x3x2xf32>''','''// CHECK: %[[O:.*]], %{{.*}} = nn.attention %arg0, %arg1, %arg2 scale = 1.000000e+00 causal :
// CHECK-NEXT: return %[[O]]''')
# A triangle that a number replaces is part of the mask where padding by the same number may hide all that it leaves: the
# first row sees all columns alike. With -inf, which leaves nothing alike, the triangle stays one.
left=torch.tensor([[[[1.,0.,0.]]]])
both=(left!=0)|~causal
nested=lambda low:f'''  %low = nn.constant dense<{low}> : tensor<1x2x3x3xf32>
  %zero = nn.constant dense<0.0> : tensor<1x1x1x3xf32>
  %visible = nn.constant dense<[[true, false, false], [true, true, false], [true, true, true]]> : tensor<3x3xi1>
  %hidden = nn.compare ne %m, %zero : tensor<1x1x1x3xf32> -> tensor<1x1x1x3xi1>
  %s = nn.dot %q, %k {{transpose_b}} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x3xf32>
  %past = nn.broadcast %visible dims = [2, 3] : tensor<3x3xi1> -> tensor<1x2x3x3xi1>
  %some = nn.select %past, %s, %low : tensor<1x2x3x3xi1>, tensor<1x2x3x3xf32>
  %all = nn.broadcast %hidden dims = [0, 1, 2, 3] : tensor<1x1x1x3xi1> -> tensor<1x2x3x3xi1>
  %seen = nn.select %all, %low, %some : tensor<1x2x3x3xi1>, tensor<1x2x3x3xf32>
  %p = nn.softmax %seen dim = 3 : tensor<1x2x3x3xf32>
  %y = nn.dot %p, %v : (tensor<1x2x3x3xf32>, tensor<1x2x3x2xf32>) -> tensor<1x2x3x2xf32>
  return %y : tensor<1x2x3x2xf32>'''
fn('attention_hidden_twice',{'q':q,'k':k,'v':v,'m':left},s.masked_fill(both,-1e9).softmax(-1)@v,nested('-1.0e9'),'''// CHECK: %[[O:.*]], %{{.*}} = nn.attention %{{.*}}, %arg1, %arg2 mask %{{.*}} scale = 1.000000e+00 : {{.*}}tensor<1x1x3x3xf32>
// CHECK-NEXT: return %[[O]]''')
late=torch.tensor([[[[0.,1.,0.]]]])
fn('attention_hidden_by_infinity',{'q':q,'k':k,'v':v,'m':late},s.masked_fill((late!=0)|~causal,-math.inf).softmax(-1)@v,nested('0xFF800000'),'''// CHECK: %[[O:.*]], %{{.*}} = nn.attention %arg0, %arg1, %arg2 mask %{{.*}} scale = 1.000000e+00 causal : {{.*}}tensor<1x1x1x3xf32>
// CHECK-NEXT: return %[[O]]''')
x=torch.tensor([1.5,-0.25,3.0,-2.0])
fn('log_sigmoid',{'x':x},F.logsigmoid(x),'''  %p = nn.sigmoid %x : tensor<4xf32>
  %y = nn.log %p : tensor<4xf32>
  return %y : tensor<4xf32>''','// CHECK: nn.softplus\n// CHECK-NOT: nn.log %\n// CHECK: return')
fn('log_of_the_complement',{'x':x},F.logsigmoid(-x),'''  %one = nn.constant dense<1.0> : tensor<4xf32>
  %p = nn.sigmoid %x : tensor<4xf32>
  %q = nn.sub %one, %p : tensor<4xf32>
  %y = nn.log %q : tensor<4xf32>
  return %y : tensor<4xf32>''','// CHECK: nn.softplus %arg0\n// CHECK-NOT: nn.log %\n// CHECK: return')
fn('log_of_softmax',{'x':x},F.log_softmax(x,0),'''  %p = nn.softmax %x dim = 0 : tensor<4xf32>
  %y = nn.log %p : tensor<4xf32>
  return %y : tensor<4xf32>''','// CHECK: nn.log_softmax %arg0 dim = 0\n// CHECK-NOT: nn.log %\n// CHECK: return')
open('test/Execute/nn-fuse-patterns.mlir','w').write('''// RUN: lowtide-opt %s --canonicalize --nn-fuse-patterns --canonicalize | FileCheck %s
// As written and as recognised: both compute PyTorch's values.
// RUN: lowtide-execute %s
// RUN: lowtide-opt %s --canonicalize --nn-fuse-patterns | lowtide-execute

'''+'\n'.join(out))
